#ifndef SFMAMBA_SERVER_PREDICTION_MASK_ENCODER_H_
#define SFMAMBA_SERVER_PREDICTION_MASK_ENCODER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "model/result.h"
#include "server/image/image_input.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Encodes the mask of one object, some rows or columns at a time.
// Thread-compatible.
class MaskEncoder {
 public:
  virtual ~MaskEncoder() = default;

  // Returns the number of rows or columns that are not encoded yet.
  virtual int lines_left() const = 0;
  // Encodes the next `lines` rows or columns, or all that are left if there are
  // fewer. Returns the number of edges in these rows or columns. An edge is a
  // place where a set and an unset pixel meet. The encoding time depends on the
  // number of edges. Returns INTERNAL if libpng fails.
  virtual absl::StatusOr<int64_t> Encode(int lines) = 0;
  // Returns the approximate size in bytes of the data encoded so far.
  virtual int64_t bytes() const = 0;
  // Moves the encoded mask into `object`. May be called only once, after
  // lines_left() becomes 0.
  virtual void Take(v1::Detection* object) = 0;
};

// Creates the encoder of `mask`. The mask's coordinates are relative to the
// region of the picture that the model saw. `encoding` must not be
// MASK_ENCODING_UNSPECIFIED. `box` is the object's box in pixels of the
// picture. A PNG contains only the pixels inside `box`.
std::unique_ptr<MaskEncoder> MakeMaskEncoder(
    v1::DetectParams::MaskEncoding encoding,
    std::shared_ptr<const model::InstanceMask> mask,
    const image::PictureFrame& frame, const model::Box& box);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_MASK_ENCODER_H_
