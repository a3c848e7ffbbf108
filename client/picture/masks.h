#ifndef SFMAMBA_CLIENT_PICTURE_MASKS_H_
#define SFMAMBA_CLIENT_PICTURE_MASKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mask.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// The functions below decode masks and maps of answers, which are not trusted.
// They return DATA_LOSS with a reason if an answer breaks the rules of
// vision.proto or exceeds the limits of picture.h.

using base::Mask;

// The mask covers the smallest rectangle that contains all its pixels. It is 0
// x 0 if it has no pixels.
absl::StatusOr<Mask> DecodeRle(const v1::CocoRle& rle);

// Decodes the mask of the pixels inside `box`. The edges of `box` are rounded
// outwards to whole pixels. The mask is at least one pixel wide and high.
absl::StatusOr<Mask> DecodePngCrop(absl::string_view png,
                                   const v1::BoundingBox& box);

// Decodes the detection's RLE or PNG. Returns a mask without pixels if it has
// neither.
absl::StatusOr<Mask> DecodeMask(const v1::Detection& detection);

// The class of each pixel.
struct IndexMap {
  int width = 0;
  int height = 0;
  uint16_t ignore = 0;         // The index of pixels without a class.
  std::vector<uint16_t> data;  // [height, width]
};

absl::StatusOr<IndexMap> DecodePngIndex(absl::string_view png);
absl::StatusOr<IndexMap> DecodeRawIndex(const v1::RawIndexMap& raw);
// A pixel without a class becomes `ignore`, 65535. A pixel in two classes is an
// error.
absl::StatusOr<IndexMap> DecodeClassRles(const v1::ClassRleList& list,
                                         int width, int height);

// Decodes the PNG, RLE or raw map of the result. It is an error if the map does
// not have the result's size.
absl::StatusOr<IndexMap> DecodeIndexMap(const v1::SegmentResult& result);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_MASKS_H_
