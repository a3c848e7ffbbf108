#ifndef SFMAMBA_MODEL_BACKBONES_AUXILIARY_TOKENS_H_
#define SFMAMBA_MODEL_BACKBONES_AUXILIARY_TOKENS_H_

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The auxiliary tokens of a stage. Each sequence has one before its first and
// one after its last token. Between Mamba blocks, the two are exchanged, so
// that information from the end of a sequence reaches its beginning. Source:
// SF-Mamba (arXiv 2603.16423), 3.2.
class AuxiliaryTokens {
 public:
  // If the tokens are learnable, takes "aux_head" and "aux_tail", [1, 1,
  // width], from `scope`.
  AuxiliaryTokens(const weights::StateDict::Scope& scope, int width,
                  const model::BackboneConfig& config,
                  const ops::Implementation& implementation);

  // Adds the auxiliary tokens to x [sequences, T, width]. Returns [sequences, T
  // + 2, width] in new memory. If attaches() is false, returns x itself.
  at::Tensor Attach(const at::Tensor& x) const;
  // Sets the first and the last token of each sequence to the learnable tokens.
  // Does nothing if the tokens are not learnable. x [sequences, T + 2, width]
  // must be contiguous.
  void FillUnset(at::Tensor& x) const;
  // Returns the kind of tokens that a partition into windows must add to the
  // ends of each sequence.
  ops::WindowEnds ends() const;
  // Removes the first and the last token of each sequence, the inverse of
  // Attach(). The result is contiguous.
  static at::Tensor Detach(const at::Tensor& x);

  // attaches() returns whether there are auxiliary tokens. swaps() returns
  // whether they are exchanged.
  bool attaches() const { return tokens_ != model::Tokens::kNone; }
  bool swaps() const { return attaches() && swap_; }

 private:
  const ops::Implementation& implementation_;
  model::Tokens tokens_;
  bool swap_;
  at::Tensor head_, tail_;  // Undefined unless the tokens are learnable.
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_AUXILIARY_TOKENS_H_
