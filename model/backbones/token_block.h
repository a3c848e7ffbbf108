#ifndef SFMAMBA_MODEL_BACKBONES_TOKEN_BLOCK_H_
#define SFMAMBA_MODEL_BACKBONES_TOKEN_BLOCK_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "model/backbones/mixer.h"
#include "model/backbones/mlp.h"
#include "model/config.h"
#include "model/layers/layer_norm.h"
#include "model/ops/implementation.h"
#include "model/ops/residual.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// A block of the last two stages. It consists of a mixer followed by an MLP.
// Each of the two reads the residual stream through a LayerNorm and adds its
// result to the stream.
class TokenBlock {
 public:
  // Makes block `block` of stage `stage`. Both count from 0, so `stage` is 2 or
  // 3.
  TokenBlock(const weights::StateDict::Scope& scope,
             const model::BackboneConfig& config, int stage, int block,
             const ops::Implementation& implementation);

  // Each `length` consecutive tokens of x form a sequence. With `swap`, the
  // first and the last token of each sequence are exchanged before the mixer.
  void Forward(ops::Residual& x, int64_t length, bool swap) const;
  // Runs an attention block, but only for tokens [first, first + count) of each
  // sequence. Drops all other tokens from x. Each row of x is one sequence.
  void ForwardPart(ops::Residual& x, int64_t first, int64_t count) const;

 private:
  layers::LayerNorm norm1_, norm2_;
  std::unique_ptr<Mixer> mixer_;
  std::unique_ptr<Mlp> mlp_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_TOKEN_BLOCK_H_
