#ifndef SFMAMBA_SERVER_PREDICTION_REQUEST_VALIDATION_H_
#define SFMAMBA_SERVER_PREDICTION_REQUEST_VALIDATION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/config.h"
#include "server/image/image.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// The checks that need no decoding: cheap enough for a gRPC thread. Each error
// says got and expected, and carries the field's path.

struct RequestLimits {
  int max_images = 64;
  image::ImageLimits image;
};

// Everything but the images themselves and what the methods below check.
absl::Status ValidateRequest(int images, const v1::RequestOptions& options,
                             const model::ModelConfig& model,
                             const RequestLimits& limits);

// `classes` of the model that was asked.
absl::Status ValidateParams(const v1::ClassifyParams& params, int classes);
absl::Status ValidateParams(const v1::DetectParams& params, int classes);
absl::Status ValidateParams(const v1::SegmentParams& params, int classes);

absl::Status ValidateRequestId(const std::string& request_id);

// What is known of an image before it is decoded.
struct ImageFacts {
  // "jpeg", "png", "webp", "pixels" or "tensor"; "unknown" of a refused file.
  absl::string_view format = "unknown";
  int64_t pixels = 0;
  image::PictureSize seen;   // Of the oriented picture, or its crop.
  image::PictureSize input;  // Of the model's input that it becomes.
  int64_t input_bytes = 0;   // Of the same.
  int64_t decode_bytes = 0;  // Of all pictures on the way there, at most.
};

// Checks the image's source, crop and orientation, and of a file its header.
// `facts` is filled as far as it is known. The error's field is relative to the
// image (".encoded").
absl::Status ValidateImage(const v1::Image& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_REQUEST_VALIDATION_H_
