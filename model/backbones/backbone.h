#ifndef SFMAMBA_MODEL_BACKBONES_BACKBONE_H_
#define SFMAMBA_MODEL_BACKBONES_BACKBONE_H_

#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/layers/features.h"
#include "model/ops/image_batch.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// Which of its maps a backbone returns.
enum class FeatureMaps { kAll, kLast };

// Computes features from images. Immutable, so thread-safe.
class Backbone {
 public:
  virtual ~Backbone() = default;

  // Returns the features of N images of H x W pixels. Mamba blocks run on
  // `fold_rows` rows (SF-Mamba's B1). These must divide every number that
  // Sequences(N, H, W) returns. 0 gives each sequence its own row.
  virtual layers::Features Forward(const ops::ImageBatch& images,
                                   int64_t fold_rows) const = 0;

  // Returns the number of sequences that a batch has in each token stage.
  virtual std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                         int64_t width) const = 0;

  // Returns the smallest number of images that a processor computes together at
  // full speed. A batch may have fewer images.
  virtual int64_t ImagesAtOnce() const { return 1; }
};

// Takes the backbone's tensors from `scope`. `image_size` is the expected side
// of the images, a hint.
std::unique_ptr<Backbone> MakeBackbone(
    const model::BackboneConfig& config, int image_size, FeatureMaps maps,
    const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation);

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_BACKBONE_H_
