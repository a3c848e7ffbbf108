#ifndef SFMAMBA_SERVER_PREDICTION_SOFTMAX_H_
#define SFMAMBA_SERVER_PREDICTION_SOFTMAX_H_

#include <vector>

#include "absl/types/span.h"

namespace sfmamba::prediction {

// Returns the softmax of the logits x, which is exp(x[i]) / sum over j of
// exp(x[j]). The logits must be finite and may have any magnitude. The absolute
// error is at most 1e-6 and the relative error at most 1e-5. Probabilities
// below 2^-126 may be 0.
std::vector<float> Softmax(absl::Span<const float> logits);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SOFTMAX_H_
