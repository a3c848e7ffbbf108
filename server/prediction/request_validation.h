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

// This file contains checks that need no decoded image. They are fast enough
// for a transport's thread. Each error contains the field's path, the received
// value and the expected values.

struct RequestLimits {
  int max_images = 64;
  image::ImageLimits image;
  bool exact_decode = false;  // See ServerConfig.exact_decode.
  // The maximum memory for decoding one image, in bytes. All decoders together
  // may use no more than this memory, so an image that needs more could never
  // be decoded.
  int64_t max_decode_bytes = std::numeric_limits<int64_t>::max();
};

// Checks the number of images and the options of the request.
absl::Status ValidateRequest(const PredictionRequest& request,
                             const model::ModelConfig& model,
                             const RequestLimits& limits);

// These functions return INVALID_ARGUMENT unless 0 <= `got` <= `most`. `field`
// is the path of the checked field, for example "params.top_k".
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
  // The region of the picture or of the model input that the part shows. If
  // ImageFacts::parts_of_input is true, the unit is pixels of the model input.
  // Otherwise the unit is pixels of the picture or of its crop
  // (ImageFacts::seen).
  image::PixelRect region;
  batching::BatchKey key;
  int64_t input_bytes = 0;
};

// The properties of an image that are known before it is decoded.
struct ImageFacts {
  // The format is "jpeg", "png", "webp", "pixels" or "tensor". It is "unknown"
  // if the file was refused.
  absl::string_view format = "unknown";
  int64_t pixels = 0;
  image::PictureSize seen;    // The size of the picture or of its crop.
  image::PictureSize input;   // The size of the model input.
  batching::BatchKey key;     // Only inputs with equal keys share a batch.
  int64_t input_bytes = 0;    // The memory of all model inputs.
  int64_t decode_bytes = 0;   // The peak memory of MakeInput().
  int64_t picture_bytes = 0;  // The memory of a picture that is kept for crops.
  // The parts into which the image is divided. If not empty, each part is a
  // model input with its own batch key. The member `key` is then not used for
  // batching.
  std::vector<PartFacts> parts;
  // If true, the parts are cut out of the model input and not resized again. If
  // false, the parts are cut out of the picture and resized.
  bool parts_of_input = false;

  // Returns the number of model inputs.
  int inputs() const { return parts.empty() ? 1 : parts.size(); }
};

// Returns the batch key of a model input, which is the type and the size with
// padding. Only inputs with equal keys can run in one batch.
batching::BatchKey KeyOf(const model::ModelConfig& model,
                         const image::PictureSize& input,
                         batching::ImageType type);

// Checks the image's source and crop, the header of an encoded image, and the
// memory that decoding needs. Stores in `facts` what is known about the image.
// An error names a field relative to the image, for example ".encoded".
absl::Status ValidateImage(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

// Returns the region, the batch key and the input size of a part that shows
// `region` of a picture. The part is resized to the input size of the model.
PartFacts PartOf(const model::ModelConfig& model,
                 const image::PixelRect& region);

// Checks that an image with parts can be divided. Stores two memory sizes in
// `facts`, the size of all parts' inputs and the peak memory for creating them.
// The image must have passed ValidateImage().
absl::Status ValidateParts(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

// Checks that the decoded picture can stay in memory until crops are cut out of
// it. Stores the size of this memory in `facts`. The image must have passed
// ValidateImage(). An image with parts must also have passed ValidateParts().
absl::Status ValidateKeptPicture(const image::ImageSource& image,
                                 const model::ModelConfig& model,
                                 const RequestLimits& limits,
                                 ImageFacts* facts);

// Converts an error of image `i` to an error of the request. The field of the
// error becomes a path in the request, for example "images[2].encoded". The
// message then starts with this path. Errors other than INVALID_ARGUMENT are
// returned unchanged.
absl::Status AtImage(int i, const absl::Status& status);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_REQUEST_VALIDATION_H_
