#ifndef SFMAMBA_MODEL_BACKBONES_STAGE_H_
#define SFMAMBA_MODEL_BACKBONES_STAGE_H_

#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/backbones/auxiliary_tokens.h"
#include "model/backbones/conv_block.h"
#include "model/backbones/token_block.h"
#include "model/config.h"
#include "model/ops/implementation.h"
#include "model/stage_geometry.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// One of the first two stages. It consists of convolution blocks on maps [N,
// width, H, W].
class ConvStage {
 public:
  // `stage` counts from 0, so it is 0 or 1. `size` is the expected side of the
  // map, which affects the choice of algorithms.
  ConvStage(const weights::StateDict::Scope& scope, int stage, int size,
            const model::BackboneConfig& config,
            const ops::Implementation& implementation);

  // Reuses the memory of x for the result if possible.
  at::Tensor Forward(at::Tensor x) const;

 private:
  std::vector<ConvBlock> blocks_;
};

// One of the last two stages. It consists of Mamba blocks followed by attention
// blocks. Each window of the map is a sequence. A window that extends beyond
// the map is padded. Unless the configuration has no auxiliary tokens, each
// sequence has one at either end.
class TokenStage {
 public:
  // `stage` counts from 0, so it is 2 or 3.
  TokenStage(const weights::StateDict::Scope& scope, int stage,
             const model::BackboneConfig& config,
             const ops::Implementation& implementation);

  // Maps x [N, width, H, W] to a map of the same shape. Reuses x's memory if
  // possible. For the Mamba blocks, all sequences are joined into `fold_rows`
  // rows, each with the same number of sequences. Therefore `fold_rows` must be
  // a divisor of Sequences(N, H, W).
  at::Tensor Forward(const at::Tensor& x, int64_t fold_rows) const;

  // Returns the number of sequences for `images` maps of this size.
  int64_t Sequences(int64_t images, int64_t height, int64_t width) const;

 private:
  // Sets `grid` to the windows of a map of this size. If attention is limited
  // to sub-windows, sets `sub` to the partition of a window into sub-windows
  // and returns true. Otherwise returns false, and `sub` must not be used.
  bool Windows(int64_t height, int64_t width, ops::WindowGrid* grid,
               ops::WindowGrid* sub) const;
  // Returns the residual stream. Its sequences are the windows of the map, with
  // auxiliary tokens.
  at::Tensor Enter(const at::Tensor& map, const ops::WindowGrid& grid) const;
  // Partitions each sequence of x into the windows of `grid`. If `attached`, x
  // has auxiliary tokens, and each window gets copies of them.
  at::Tensor CutSequences(const at::Tensor& x, const ops::WindowGrid& grid,
                          bool attached) const;
  void RunMamba(ops::Residual& x, int64_t fold_rows) const;
  // Runs the attention blocks. The result contains at least the first `needed`
  // tokens of each sequence.
  at::Tensor RunAttention(ops::Residual x, bool attached, int64_t needed) const;

  model::StageGeometry geometry_;
  model::Discard discard_;
  std::unique_ptr<const ops::WindowOp> windows_;
  AuxiliaryTokens tokens_;
  std::vector<TokenBlock> mamba_, attention_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_STAGE_H_
