#ifndef SFMAMBA_MODEL_BACKBONES_STAGE_H_
#define SFMAMBA_MODEL_BACKBONES_STAGE_H_

#include <vector>

#include "ATen/core/Tensor.h"
#include "model/backbones/auxiliary_tokens.h"
#include "model/backbones/conv_block.h"
#include "model/backbones/token_block.h"
#include "model/config.h"
#include "model/layers/layer_options.h"
#include "model/layers/residual.h"
#include "model/ops/window_partition.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// Stages 1 and 2: convolution blocks on maps [N, width, H, W].
class ConvStage {
 public:
  // `stage` is 0 or 1; `size` the expected side of the map, a hint.
  ConvStage(const weights::StateDict::Scope& scope, int stage, int size,
            const model::BackboneConfig& config,
            const layers::LayerOptions& options);

  // Takes the memory of x for its result where it can.
  at::Tensor Forward(at::Tensor x) const;

 private:
  std::vector<ConvBlock> blocks_;
};

// Stages 3 and 4: Mamba blocks, then attention blocks, on the windows of the
// map as sequences, between two auxiliary tokens. A window, padded where it
// hangs over the map, is a sequence of its own everywhere.
class TokenStage {
 public:
  // `stage` is 2 or 3.
  TokenStage(const weights::StateDict::Scope& scope, int stage,
             const model::BackboneConfig& config,
             const layers::LayerOptions& options);

  // x [N, width, H, W] to the same, taking x's memory where it can. The Mamba
  // blocks run on `fold_rows` rows, a divisor of Sequences(N, H, W).
  at::Tensor Forward(const at::Tensor& x, int64_t fold_rows) const;

  // Sequences that N maps of this size become.
  int64_t Sequences(int64_t images, int64_t height, int64_t width) const;

 private:
  // How the stage cuts a map of this size, for all blocks and, if the result is
  // true, into smaller windows `sub` for the attention blocks.
  bool Windows(int64_t height, int64_t width, ops::WindowGrid* grid,
               ops::WindowGrid* sub) const;
  // The map's windows as sequences between their tokens: the residual stream.
  at::Tensor Enter(const at::Tensor& map, const ops::WindowGrid& grid) const;
  void RunMamba(layers::Residual& x, int64_t fold_rows) const;
  // Of the last block at least the first `needed` tokens of each sequence.
  at::Tensor RunAttention(layers::Residual x, bool attached,
                          int64_t needed) const;

  int window_;            // Side; 0: the whole map.
  int attention_window_;  // Side; 0: as the Mamba blocks.
  model::Discard discard_;
  bool fuse_;
  // On a device: of the residual stream, and of the stage's result.
  at::ScalarType stream_type_, map_type_;
  AuxiliaryTokens tokens_;
  std::vector<TokenBlock> mamba_, attention_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_STAGE_H_
