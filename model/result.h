#ifndef SFMAMBA_MODEL_RESULT_H_
#define SFMAMBA_MODEL_RESULT_H_

#include <variant>
#include <vector>

namespace sfmamba {

struct Classification {
  std::vector<float> logits;     // [num_classes]
  std::vector<float> embedding;  // [feature_width], normalised and pooled.
};

// What a model says of one image: one alternative a kind of head.
using Result = std::variant<Classification>;

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_RESULT_H_
