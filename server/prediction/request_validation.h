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
  // The region that the part shows, in pixels. If ImageFacts::parts_of_input is
  // true, this is a region of the model input. Otherwise, this is a region of
  // the picture. If the request crops the picture, the region's position is
  // relative to the crop.
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
  int64_t decode_bytes = 0;   // The peak memory of decoding.
  int64_t picture_bytes = 0;  // The memory of a picture that is kept for crops.
  // The parts into which the image is divided. The list is empty if the image
  // is not divided. Otherwise, each part becomes a model input with its own
  // batch key, and the member `key` above is not used for batching.
  std::vector<PartFacts> parts;
  // If true, the parts are cut out of the model input and not resized again. If
  // false, the parts are cut out of the picture and resized.
  bool parts_of_input = false;

  // Returns the number of model inputs.
  int inputs() const { return parts.empty() ? 1 : parts.size(); }
};

// Returns the batch key of a model input. The key consists of the pixel type
// and of the height and width after padding. Only inputs with equal keys can
// run in one batch.
batching::BatchKey KeyOf(const model::ModelConfig& model,
                         const image::PictureSize& input,
                         batching::ImageType type);

// Checks the image's source, its crop, and the header of an encoded image. Also
// checks that decoding needs at most limits.max_decode_bytes of memory. Stores
// in `facts` what is known about the image. An error names a field relative to
// the image, for example ".encoded".
absl::Status ValidateImage(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

// Returns the properties of a part that shows `region` of a picture. The part's
// model input is the same as if the client had sent only this region as a
// picture.
PartFacts PartOf(const model::ModelConfig& model,
                 const image::PixelRect& region);

// Checks that an image with parts can be divided. The image must have passed
// ValidateImage(). Stores in facts->decode_bytes the peak memory of decoding
// the picture and creating the parts' model inputs. Stores in
// facts->input_bytes the total memory of these inputs. Returns an error if the
// image is a tensor, or if facts->decode_bytes exceeds limits.max_decode_bytes.
absl::Status ValidateParts(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts);

// Checks an image whose decoded picture stays in memory until crops are cut out
// of it. Returns an error if the image is a tensor, or if decoding needs more
// memory than limits.max_decode_bytes. Stores the picture's memory in
// facts->picture_bytes. The image must have passed ValidateImage(). An image
// with parts must also have passed ValidateParts().
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
