#ifndef SFMAMBA_SERVER_IMAGE_INPUT_H_
#define SFMAMBA_SERVER_IMAGE_INPUT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "server/image.h"
#include "server/task.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba {

struct InputTimes {
  absl::Duration decode;
  absl::Duration preprocess;  // Zero of a tensor.
};

// The image of a request as `model` takes it: decoded, cropped, resized; a
// tensor as it is. The image must be valid (ValidateImage). INVALID_ARGUMENT
// with a field relative to the image (".encoded") if its bytes cannot be
// decoded.
absl::StatusOr<ImageBuffer> MakeInput(const v1::Image& image,
                                      const ModelConfig& model,
                                      v1::RequestOptions::Resize resize,
                                      const ImageLimits& limits,
                                      InputTimes* times);

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_IMAGE_INPUT_H_
