#ifndef SFMAMBA_SERVER_PREDICTION_EXPECTED_COST_H_
#define SFMAMBA_SERVER_PREDICTION_EXPECTED_COST_H_

#include "absl/time/time.h"
#include "server/prediction/request_validation.h"

namespace sfmamba::prediction {

// How long one thread is expected to take to turn the image into a model's
// input. Only the order of magnitude matters: it decides what is decoded first.
absl::Duration ExpectedDecode(const ImageFacts& image);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_EXPECTED_COST_H_
