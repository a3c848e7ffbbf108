#ifndef SFMAMBA_SERVER_PREDICTION_ANSWER_H_
#define SFMAMBA_SERVER_PREDICTION_ANSWER_H_

#include <variant>
#include <vector>

#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// The answer to one image, with maps and masks encoded.
struct Answer {
  std::variant<v1::ClassifyResult, v1::DetectResult, v1::SegmentResult> result;
  // A classifier's, one a class; empty unless they were asked for.
  std::vector<float> logits;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_ANSWER_H_
