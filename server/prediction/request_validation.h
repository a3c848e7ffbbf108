#ifndef SFMAMBA_SERVER_PREDICTION_REQUEST_VALIDATION_H_
#define SFMAMBA_SERVER_PREDICTION_REQUEST_VALIDATION_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/config.h"
#include "server/batching/batch_key.h"
#include "server/image/image.h"
#include "server/image/image_source.h"
#include "server/prediction/prediction_request.h"

namespace sfmamba::prediction {

// Checks that need no decoding. These checks are fast enough for a transport's
// thread. Each error contains the field's path, the received value and the
// expected values.

struct RequestLimits {
  int max_images = 64;
  image::ImageLimits image;
  bool exact_decode = false;  // See ServerConfig.
  // The maximum memory for decoding an image, in bytes. All decoders share this
  // budget.
  int64_t max_decode_bytes = std::numeric_limits<int64_t>::max();
};

// Checks the number of images and the options of the request.
absl::Status ValidateRequest(const PredictionRequest& request,
                             const model::ModelConfig& model,
                             const RequestLimits& limits);

// Returns INVALID_ARGUMENT with `field` unless 0 <= `got` <= `most`.
absl::Status CheckRange(absl::string_view field, int64_t got, int64_t most);
absl::Status CheckFraction(absl::string_view field, float got, float most = 1);

// Checks the parameters of a task, for a model with `classes` classes.
absl::Status ValidateParams(const v1::ClassifyParams& params, int classes);
absl::Status ValidateParams(const v1::DetectParams& params, int classes);
absl::Status ValidateParams(const v1::SegmentParams& params, int classes);
// Checks the parameters for crops, for a classifier with `classes` classes.
absl::Status ValidateCrops(const v1::Crops& crops, int classes);

absl::Status ValidateRequestId(absl::string_view request_id);

// One of several model inputs that are created from one image.
struct PartFacts {
  // In pixels of ImageFacts::input if ImageFacts::parts_of_input, and otherwise
  // in pixels of ImageFacts::seen.
  image::PixelRect region;
  batching::BatchKey key;
  int64_t input_bytes = 0;
};

// The properties of an image that are known before it is decoded.
struct ImageFacts {
  // "jpeg", "png", "webp", "pixels" or "tensor", or "unknown" if the file was
  // refused.
  absl::string_view format = "unknown";
  int64_t pixels = 0;
  image::PictureSize seen;    // The oriented picture, or the crop.
  image::PictureSize input;   // The model input.
  batching::BatchKey key;     // Selects the image's batches.
  int64_t input_bytes = 0;    // The memory of all model inputs.
  int64_t decode_bytes = 0;   // The peak memory of MakeInput().
  int64_t picture_bytes = 0;  // The kept picture's memory, or 0.
  // The parts into which the image is divided. If not empty, each part is a
  // model input with its own key, and `key` is not used for batching.
  std::vector<PartFacts> parts;
  // If true, the parts are cut out of the model input and not resized again. If
  // false, the parts are cut out of the picture and resized.
  bool parts_of_input = false;

  // Returns the number of model inputs.
  int inputs() const { return parts.empty() ? 1 : parts.size(); }
};

// Returns the key that selects the batches of an input.
batching::BatchKey KeyOf(const model::ModelConfig& model,
                         const image::PictureSize& input,
                         batching::ImageType type);

// Checks the image's source and crop, the header of an encoded image, and the
// memory that decoding takes. Sets the known facts in `facts`. The field of an
// error is relative to the image (".encoded").
absl::Status ValidateImage(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

// Returns the facts of the part inside `region` after the model's resizing.
PartFacts PartOf(const model::ModelConfig& model,
                 const image::PixelRect& region);

// Checks that an image with parts can be divided. Computes the memory that the
// inputs and their creation need. The image must have passed ValidateImage().
absl::Status ValidateParts(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

// Checks that the decoded picture can be kept in memory and computes its size.
// The image must have passed the checks above.
absl::Status ValidateKeptPicture(const image::ImageSource& image,
                                 const model::ModelConfig& model,
                                 const RequestLimits& limits,
                                 ImageFacts* facts);

// Converts the field of an error to a path in the request
// ("images[2].encoded"), for image `i`. The message then starts with the path.
// Returns all errors except INVALID_ARGUMENT unchanged.
absl::Status AtImage(int i, const absl::Status& status);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_REQUEST_VALIDATION_H_
