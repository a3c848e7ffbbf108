#ifndef SFMAMBA_MODEL_HEADS_HEAD_H_
#define SFMAMBA_MODEL_HEADS_HEAD_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "model/layers/features.h"
#include "model/config.h"
#include "model/layers/layer_options.h"
#include "model/prediction_options.h"
#include "model/result.h"
#include "model/weights/state_dict.h"

namespace sfmamba {

// An image of a batch as a dense head must know it. Pixels.
struct ImageInfo {
  int height = 0, width = 0;  // Of the network's input, without padding.
  int original_height = 0, original_width = 0;  // Of the picture.
  DetectionOptions detection;
  SegmentationOptions segmentation;
};

// From a backbone's features to results. Immutable, so thread-safe.
class Head {
 public:
  virtual ~Head() = default;

  // One result for each image of the features, in order.
  virtual std::vector<Result> Forward(
      const Features& features, absl::Span<const ImageInfo> images) const = 0;
};

// Takes the head's tensors from `scope`.
std::unique_ptr<Head> MakeHead(const ModelConfig& config,
                               const StateDict::Scope& scope,
                               const LayerOptions& options);

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_HEADS_HEAD_H_
