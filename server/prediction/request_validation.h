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

// The checks that need no decoding, cheap enough for a transport's thread. Each
// error says what was got and what was expected, and carries the field's path.

struct RequestLimits {
  int max_images = 64;
  image::ImageLimits image;
  bool exact_decode = false;  // See ServerConfig.
  // The memory that decoding may take: what all decoders together have.
  int64_t max_decode_bytes = std::numeric_limits<int64_t>::max();
};

// Checks the number of images and the options.
absl::Status ValidateRequest(const PredictionRequest& request,
                             const model::ModelConfig& model,
                             const RequestLimits& limits);

// INVALID_ARGUMENT with `field` unless `got` is 0 to `most`.
absl::Status CheckRange(absl::string_view field, int64_t got, int64_t most);
absl::Status CheckFraction(absl::string_view field, float got, float most = 1);

// Checks a task's parameters for a model of `classes` classes.
absl::Status ValidateParams(const v1::ClassifyParams& params, int classes);
absl::Status ValidateParams(const v1::DetectParams& params, int classes);
absl::Status ValidateParams(const v1::SegmentParams& params, int classes);
// Checks what is asked of crops, for a classifier of `classes` classes.
absl::Status ValidateCrops(const v1::Crops& crops, int classes);

absl::Status ValidateRequestId(absl::string_view request_id);

// One of several inputs that are made of an image.
struct PartFacts {
  image::PixelRect region;  // In pixels of what is seen, or of the input.
  batching::BatchKey key;
  int64_t input_bytes = 0;
};

// What is known of an image before it is decoded.
struct ImageFacts {
  // "jpeg", "png", "webp", "pixels" or "tensor"; "unknown" of a refused file.
  absl::string_view format = "unknown";
  int64_t pixels = 0;
  image::PictureSize seen;    // The oriented picture, or its crop.
  image::PictureSize input;   // The model's input that it becomes.
  batching::BatchKey key;     // Says which batches this input may be part of.
  int64_t input_bytes = 0;    // The memory that its inputs take together.
  int64_t decode_bytes = 0;   // The memory that MakeInput() takes at most.
  int64_t picture_bytes = 0;  // Its decoded picture's, if that is kept.
  // Empty: the image is one input. Otherwise each of its parts is one, which
  // `input` and `key` say nothing of.
  std::vector<PartFacts> parts;
  // The parts are cut out of the input that the image becomes, as they are.
  // Otherwise they are cut out of the picture and resized.
  bool parts_of_input = false;

  // The number of images for the network.
  int inputs() const { return parts.empty() ? 1 : parts.size(); }
};

// The key of an input's batches.
batching::BatchKey KeyOf(const model::ModelConfig& model,
                         const image::PictureSize& input,
                         batching::ImageType type);

// Checks the image's source and crop, the header of an encoded image, and that
// it can be decoded in the memory that there is.
// `facts` is filled as far as they are known. The error's field is relative to
// the image (".encoded").
absl::Status ValidateImage(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

// The facts of the part inside `region`, resized as the model's preprocessing
// says.
PartFacts PartOf(const model::ModelConfig& model,
                 const image::PixelRect& region);

// Checks that an image with parts can be divided, and sets the memory that its
// inputs and their making take. For images that passed ValidateImage().
absl::Status ValidateParts(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

// Checks that an image's picture can be kept once it is decoded, and sets the
// memory that this takes. For images that passed the checks above.
absl::Status ValidateKeptPicture(const image::ImageSource& image,
                                 const model::ModelConfig& model,
                                 const RequestLimits& limits,
                                 ImageFacts* facts);

// The error of a request's i-th image: the field becomes a path of the request
// ("images[2].encoded"), which the message then names. Errors that are not
// INVALID_ARGUMENT stay as they are.
absl::Status AtImage(int i, const absl::Status& status);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_REQUEST_VALIDATION_H_
