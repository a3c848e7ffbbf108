#ifndef SFMAMBA_MODEL_HEADS_HEAD_H_
#define SFMAMBA_MODEL_HEADS_HEAD_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "model/config.h"
#include "model/layers/features.h"
#include "model/ops/implementation.h"
#include "model/prediction_options.h"
#include "model/result.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// The sizes of an image in pixels, and its options. Dense heads need them.
struct ImageInfo {
  int height = 0, width = 0;                    // The input without padding.
  int original_height = 0, original_width = 0;  // The picture.
  model::PredictionOptions options;
};

class ClassificationHead;

// Computes results from a backbone's features. Immutable, so thread-safe.
class Head {
 public:
  virtual ~Head() = default;

  // Returns one result for each image, in order.
  virtual std::vector<model::Result> Forward(
      const layers::Features& features,
      absl::Span<const ImageInfo> images) const = 0;

  // Returns this head if it is a classifier, whose Forward() can be done in two
  // steps. Returns null for other heads.
  virtual const ClassificationHead* AsClassifier() const { return nullptr; }
};

// Makes the head that config.task needs. Takes its tensors from `scope`.
std::unique_ptr<Head> MakeHead(const model::ModelConfig& config,
                               const weights::StateDict::Scope& scope,
                               const ops::Implementation& implementation);

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_HEAD_H_
