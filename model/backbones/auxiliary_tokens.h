#ifndef SFMAMBA_MODEL_BACKBONES_AUXILIARY_TOKENS_H_
#define SFMAMBA_MODEL_BACKBONES_AUXILIARY_TOKENS_H_

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The auxiliary tokens of a stage, one before and one after each sequence. They
// are exchanged between Mamba blocks, so that information from the end of a
// sequence reaches its beginning. Source: SF-Mamba (arXiv 2603.16423), 3.2.
class AuxiliaryTokens {
 public:
  // Takes learnable tokens, "aux_head" and "aux_tail" [1, 1, width], from
  // `scope`.
  AuxiliaryTokens(const weights::StateDict::Scope& scope, int width,
                  const model::BackboneConfig& config,
                  const ops::Implementation& implementation);

  // Maps x [sequences, T, width] to [sequences, T + 2, width] in new memory.
  // Returns x if attaches() is false.
  at::Tensor Attach(const at::Tensor& x) const;
  // Sets the first and the last token of each sequence to the learnable tokens.
  // Does nothing if there are none. x [sequences, T + 2, width] is contiguous.
  void FillUnset(at::Tensor& x) const;
  // Returns what a partition into windows must set at the ends of the
  // sequences.
  ops::WindowEnds ends() const;
  // The inverse of Attach(). The result is contiguous.
  static at::Tensor Detach(const at::Tensor& x);

  // Return whether there are auxiliary tokens, and whether they are exchanged.
  bool attaches() const { return tokens_ != model::Tokens::kNone; }
  bool swaps() const { return attaches() && swap_; }

 private:
  const ops::Implementation& implementation_;
  model::Tokens tokens_;
  bool swap_;
  at::Tensor head_, tail_;  // For learnable tokens only.
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_AUXILIARY_TOKENS_H_
