#ifndef SFMAMBA_SERVER_PREDICTION_MASK_ENCODER_H_
#define SFMAMBA_SERVER_PREDICTION_MASK_ENCODER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "model/result.h"
#include "server/image/image_input.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Encodes the mask of one object, some of its rows or columns at a time.
// Thread-compatible.
class MaskEncoder {
 public:
  virtual ~MaskEncoder() = default;

  // Rows or columns that are not encoded yet.
  virtual int lines_left() const = 0;
  // Encodes the next `lines` of them, or those that are left. Returns the
  // number of edges that it found, which the time depends on; INTERNAL if
  // libpng fails.
  virtual absl::StatusOr<int64_t> Encode(int lines) = 0;
  // The bytes of what has been encoded so far, about.
  virtual int64_t bytes() const = 0;
  // Puts the mask into `object`; once, when no lines are left.
  virtual void Take(v1::Detection* object) = 0;
};

// The encoder of `mask`, which lies in what the model saw of a picture.
// `encoding` is one of masks; `box` is the object's in the picture.
std::unique_ptr<MaskEncoder> MakeMaskEncoder(
    v1::DetectParams::MaskEncoding encoding,
    std::shared_ptr<const model::InstanceMask> mask,
    const image::PictureFrame& frame, const model::Box& box);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_MASK_ENCODER_H_
