#ifndef SFMAMBA_SERVER_PREDICTION_SLIDING_WINDOW_H_
#define SFMAMBA_SERVER_PREDICTION_SLIDING_WINDOW_H_

#include "absl/status/status.h"
#include "model/config.h"
#include "server/image/image.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/sliding/slide_grid.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// This file divides the model input of a segmentation request into sliding
// windows.

// Returns INVALID_ARGUMENT if a size is out of range, or if a stride is larger
// than the window. A stride larger than the window would skip pixels.
absl::Status ValidateSlide(const v1::SlidingWindow& slide,
                           const model::ModelConfig& model);

// Returns the grid of windows over a model input. `slide` must be valid.
SlideGrid GridOf(const v1::SlidingWindow& slide,
                 const model::ModelConfig& model,
                 const image::PictureSize& input);

// Divides the model input into windows and makes each window a part of the
// image. Returns INVALID_ARGUMENT if there are more than `most` windows. The
// error message then suggests a larger window and stride.
absl::Status DivideIntoWindows(const v1::SlidingWindow& slide,
                               const model::ModelConfig& model, int most,
                               ImageFacts* image);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_SLIDING_WINDOW_H_
