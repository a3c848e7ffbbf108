#ifndef SFMAMBA_SERVER_REQUEST_VALIDATION_H_
#define SFMAMBA_SERVER_REQUEST_VALIDATION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/config.h"
#include "server/image.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba {

// The checks that need no decoding: cheap enough for a gRPC thread. Each error
// says got and expected, and carries the field's path.

struct RequestLimits {
  int max_images = 64;
  ImageLimits image;
};

// Everything but the images themselves. `classes` of the model that was asked.
absl::Status ValidateClassify(const v1::ClassifyRequest& request, int classes,
                              const RequestLimits& limits);

absl::Status ValidateRequestId(const std::string& request_id);

// What is known of an image before it is decoded.
struct ImageFacts {
  // "jpeg", "png", "webp", "pixels" or "tensor"; "unknown" of a refused file.
  absl::string_view format = "unknown";
  int64_t pixels = 0;
  int64_t input_bytes = 0;  // Of the model's input that it becomes.
};

// Checks the image's source, crop and orientation, and of a file its header.
// `facts` is filled as far as it is known. The error's field is relative to the
// image (".encoded").
absl::Status ValidateImage(const v1::Image& image, const ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_REQUEST_VALIDATION_H_
