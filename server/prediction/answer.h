#ifndef SFMAMBA_SERVER_PREDICTION_ANSWER_H_
#define SFMAMBA_SERVER_PREDICTION_ANSWER_H_

#include <variant>
#include <vector>

#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// The answer to one image. Class maps and masks are already encoded.
struct Answer {
  std::variant<v1::ClassifyResult, v1::DetectResult, v1::SegmentResult> result;
  // One logit per class. Empty unless the model is a classifier and the request
  // asks for logits.
  std::vector<float> logits;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_ANSWER_H_
