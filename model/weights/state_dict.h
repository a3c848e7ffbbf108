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

// The tensors of a checkpoint by name, from which a model is built. They must
// match the model exactly. Every tensor that the model takes must exist with
// the same shape. No other tensors may exist, except BatchNorm's
// num_batches_tracked and the auxiliary_head used in training.
//
// Errors are collected. Therefore a model can be built without checks in
// between, and Finish() reports all errors:
//
//   StateDict weights(file->tensors());
//   Backbone backbone(config, weights.root());
//   absl::Status status = weights.Finish();
//
// Prefixes of training wrappers are removed, see WithoutPrefixes(). Some
// tensors may be stored in another shape with the same values, for example
// dt_proj.weight as a convolution of length 1, [out, in, 1]. Not thread-safe.
class StateDict {
 public:
  // Returns an fp32 tensor for this name and shape.
  using Generator =
      std::function<at::Tensor(const std::string& key, at::IntArrayRef shape)>;

  // The part of a StateDict whose keys begin with a prefix. Scope::Take()
  // returns tensors on the device that was passed to root(). A Scope is small
  // and may be copied. The StateDict must outlive it.
  class Scope {
   public:
    // Returns the part whose keys continue with `name` and a dot, for example
    // Sub("levels.2").
    Scope Sub(absl::string_view name) const;
    at::Tensor Take(absl::string_view key, at::IntArrayRef shape) const;

   private:
    friend class StateDict;
    Scope(StateDict* dict, std::string prefix, at::Device device)
        : dict_(dict), prefix_(std::move(prefix)), device_(device) {}

    StateDict* dict_;
    std::string prefix_;  // Empty or ends with a dot.
    at::Device device_;   // Take() copies tensors to this device.
  };

  // The memory of `tensors` must outlive the StateDict. It need not outlive the
  // tensors that are taken from the StateDict.
  explicit StateDict(const std::map<std::string, TensorView>& tensors);
  // Generates every tensor that is taken, so none can be missing or surplus.
  explicit StateDict(Generator generate);

  StateDict(const StateDict&) = delete;
  StateDict& operator=(const StateDict&) = delete;

  Scope root(at::Device device = at::kCPU) { return Scope(this, "", device); }

  // Returns a copy of the tensor `key`, fp32 and contiguous. fp16 and bf16 are
  // converted. If the tensor is missing, has another shape or type, or is not
  // finite, returns zeros of this shape. Finish() then returns an error.
  at::Tensor Take(const std::string& key, at::IntArrayRef shape);

  // Returns INVALID_ARGUMENT if tensors are missing, surplus or not finite, or
  // have another shape or type. The error lists the first 20 of them and the
  // number of the others.
  absl::Status Finish() const;

 private:
  // If generate_ is not null, tensors come from it. Otherwise they come from
  // stored_.
  Generator generate_;
  std::map<std::string, TensorView> stored_;
  std::set<std::string> taken_;      // The keys that Take() was called with.
  std::vector<std::string> errors_;  // Take()'s errors, in order.
};

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_STATE_DICT_H_
