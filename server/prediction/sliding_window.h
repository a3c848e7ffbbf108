#ifndef SFMAMBA_SERVER_PREDICTION_SLIDING_WINDOW_H_
#define SFMAMBA_SERVER_PREDICTION_SLIDING_WINDOW_H_

#include "absl/status/status.h"
#include "model/config.h"
#include "server/image/image.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/sliding/slide_grid.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// What a segmenter does with a request's sliding window.

// INVALID_ARGUMENT if a size is negative, or if a stride is larger than the
// window, which would leave out pixels.
absl::Status ValidateSlide(const v1::SlidingWindow& slide,
                           const model::ModelConfig& model);

// The windows over an input of the model. `slide` is valid.
SlideGrid GridOf(const v1::SlidingWindow& slide,
                 const model::ModelConfig& model,
                 const image::PictureSize& input);

// Makes each window over the image's input one of its parts. INVALID_ARGUMENT,
// which says what would fit, if there would be more than `most`.
absl::Status DivideIntoWindows(const v1::SlidingWindow& slide,
                               const model::ModelConfig& model, int most,
                               ImageFacts* image);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SLIDING_WINDOW_H_
