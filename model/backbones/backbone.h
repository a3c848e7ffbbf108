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

// The maps that a backbone returns: the maps of all stages or only the last
// one.
enum class FeatureMaps { kAll, kLast };

// Computes features from images. Immutable, so thread-safe.
class Backbone {
 public:
  virtual ~Backbone() = default;

  // Returns the features of N images of H x W pixels. Mamba blocks put the
  // sequences of a batch one after another into `fold_rows` rows, each of which
  // has the same number of sequences. The paper SF-Mamba (arXiv 2603.16423)
  // calls this number of rows B1. `fold_rows` must divide every number that
  // Sequences(N, H, W) returns. If it is 0, each sequence has its own row.
  virtual layers::Features Forward(const ops::ImageBatch& images,
                                   int64_t fold_rows) const = 0;

  // Returns the number of sequences of a batch in each token stage, in the
  // order of the stages. A token stage consists of Mamba and attention blocks,
  // which process sequences of tokens. A backbone that is not divided into such
  // stages returns one number.
  virtual std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                         int64_t width) const = 0;

  // Returns the smallest number of images for which a CPU reaches its full
  // speed. A batch may have fewer images.
  virtual int64_t ImagesAtOnce() const { return 1; }
};

// Takes the backbone's tensors from `scope`. `image_size` is the expected side
// of the images in pixels, which affects the choice of algorithms.
std::unique_ptr<Backbone> MakeBackbone(
    const model::BackboneConfig& config, int image_size, FeatureMaps maps,
    const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation);

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_BACKBONE_H_
