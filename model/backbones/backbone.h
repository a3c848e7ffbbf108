#ifndef SFMAMBA_MODEL_BACKBONES_BACKBONE_H_
#define SFMAMBA_MODEL_BACKBONES_BACKBONE_H_

#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/layers/features.h"
#include "model/layers/image_batch.h"
#include "model/layers/layer_options.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// Immutable, so thread-safe.
class Backbone {
 public:
  virtual ~Backbone() = default;

  // N images of H x W pixels. Mamba blocks run on `fold_rows` rows
  // (SF-Mamba's B1), which divides each of Sequences(N, H, W); 0: one row a
  // sequence.
  virtual layers::Features Forward(const layers::ImageBatch& images,
                                   int64_t fold_rows) const = 0;

  // Sequences that such a batch becomes in each stage of tokens.
  virtual std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                         int64_t width) const = 0;
};

// Takes the backbone's tensors from `scope`. `image_size` is the side of the
// images expected, a hint.
std::unique_ptr<Backbone> MakeBackbone(const model::BackboneConfig& config,
                                       int image_size,
                                       const weights::StateDict::Scope& scope,
                                       const layers::LayerOptions& options);

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_BACKBONE_H_
