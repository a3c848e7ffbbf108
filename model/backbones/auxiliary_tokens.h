#ifndef SFMAMBA_MODEL_BACKBONES_AUXILIARY_TOKENS_H_
#define SFMAMBA_MODEL_BACKBONES_AUXILIARY_TOKENS_H_

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The auxiliary tokens of a stage: one before and one after each sequence,
// which carry what the scan saw at its end back to its beginning. They change
// places after each Mamba block. Source: SF-Mamba (arXiv 2603.16423), 3.2.
class AuxiliaryTokens {
 public:
  // Learnable tokens are "aux_head" and "aux_tail" of `scope`, [1, 1, width].
  AuxiliaryTokens(const weights::StateDict::Scope& scope, int width,
                  const model::BackboneConfig& config, bool fuse);

  // [sequences, T, width] to [sequences, T + 2, width], in memory of its own;
  // the same sequences where there are no tokens.
  at::Tensor Attach(const at::Tensor& x) const;
  // Fills the first and the last token of each sequence x [sequences, T + 2,
  // width], contiguous. Only if attaches().
  void Fill(at::Tensor& x) const;
  // The inverse, contiguous.
  static at::Tensor Detach(const at::Tensor& x);

  // Whether blocks see tokens, and whether these change places.
  bool attaches() const { return tokens_ != model::Tokens::kNone; }
  bool swaps() const { return attaches() && swap_; }

 private:
  model::Tokens tokens_;
  bool swap_;
  bool fuse_;
  at::Tensor head_, tail_;  // Learnable tokens only.
};

// x [rows, tokens, width] with the first and the last of each `length` tokens
// exchanged.
at::Tensor SwapEnds(const at::Tensor& x, int64_t length);

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_AUXILIARY_TOKENS_H_
