#ifndef SFMAMBA_MODEL_WEIGHTS_STATE_DICT_H_
#define SFMAMBA_MODEL_WEIGHTS_STATE_DICT_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// A checkpoint's tensors by name, handed out while a model is built. Strict:
// what the model asks for must be there in that shape, and nothing else may be
// there (BatchNorm's num_batches_tracked and auxiliary_head, which is for
// training only, apart).
//
// Errors are collected, so that a model is built to its end in one straight
// line and the first answer names all that is wrong:
//
//   StateDict weights(file->tensors());
//   Backbone backbone(config, weights.root());
//   absl::Status status = weights.Finish();
//
// Prefixes that training wrappers leave on every key ("module.", "model.",
// "backbone.") are stripped; where the alphabetically first key begins with
// "encoder.", only the keys that do are kept, without it. dt_proj.weight may be
// stored as a convolution of length 1, [out, in, 1]. Not thread-safe.
class StateDict {
 public:
  // Gives the fp32 tensor of this name and shape.
  using Generator =
      std::function<at::Tensor(const std::string& key, at::IntArrayRef shape)>;

  // Part of a StateDict: the keys that begin with a prefix, for a model on one
  // device. Cheap to copy; used while the StateDict lives.
  class Scope {
   public:
    // The keys that begin with `name` and a dot, as in Sub("levels.2").
    Scope Sub(absl::string_view name) const;
    at::Tensor Take(absl::string_view key, at::IntArrayRef shape) const;

   private:
    friend class StateDict;
    Scope(StateDict* dict, std::string prefix, at::Device device)
        : dict_(dict), prefix_(std::move(prefix)), device_(device) {}

    StateDict* dict_;
    std::string prefix_;  // Empty or ends with a dot.
    at::Device device_;   // That tensors are taken to.
  };

  // What the tensors view must outlive the StateDict, but not the tensors taken
  // from it.
  explicit StateDict(const std::map<std::string, TensorView>& tensors);
  // Has every key in every shape, so that nothing is ever surplus.
  explicit StateDict(Generator generate);

  StateDict(const StateDict&) = delete;
  StateDict& operator=(const StateDict&) = delete;

  Scope root(at::Device device = at::kCPU) { return Scope(this, "", device); }

  // The tensor `key`: fp32, contiguous, its own memory; fp16 and bf16 are
  // widened. If it is missing, misshapen or of another type, Finish() will say
  // so and the result is zeros of that shape.
  at::Tensor Take(const std::string& key, at::IntArrayRef shape);

  // INVALID_ARGUMENT listing each missing, surplus, misshapen or mistyped
  // tensor (the first 20 and how many more).
  absl::Status Finish() const;

 private:
  Generator generate_;                        // The source, or null,
  std::map<std::string, TensorView> stored_;  // and then this is.
  std::set<std::string> taken_;               // Keys that were asked for.
  std::vector<std::string> errors_;  // Of Take(), in the order of the calls.
};

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_STATE_DICT_H_
