#ifndef SFMAMBA_MODEL_HEADS_HEAD_H_
#define SFMAMBA_MODEL_HEADS_HEAD_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "model/config.h"
#include "model/layers/features.h"
#include "model/layers/layer_options.h"
#include "model/prediction_options.h"
#include "model/result.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// An image of a batch as a dense head must know it. Pixels.
struct ImageInfo {
  int height = 0, width = 0;  // Of the network's input, without padding.
  int original_height = 0, original_width = 0;  // Of the picture.
  model::DetectionOptions detection;
  model::SegmentationOptions segmentation;
};

// From a backbone's features to results. Immutable, so thread-safe.
class Head {
 public:
  virtual ~Head() = default;

  // One result for each image of the features, in order.
  virtual std::vector<model::Result> Forward(
      const layers::Features& features,
      absl::Span<const ImageInfo> images) const = 0;
};

// Takes the head's tensors from `scope`.
std::unique_ptr<Head> MakeHead(const model::ModelConfig& config,
                               const weights::StateDict::Scope& scope,
                               const layers::LayerOptions& options);

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_HEAD_H_
