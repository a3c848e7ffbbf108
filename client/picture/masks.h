#ifndef SFMAMBA_CLIENT_PICTURE_MASKS_H_
#define SFMAMBA_CLIENT_PICTURE_MASKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mask.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// Decoders of the answers' masks and maps. They trust nothing: an answer that
// breaks the rules of vision.proto, or is larger than picture.h's limits, is
// DATA_LOSS with a message that says how.

using base::Mask;

// The smallest rectangle with all pixels of the mask; 0 x 0 if it has none.
absl::StatusOr<Mask> DecodeRle(const v1::CocoRle& rle);

// `png` covers `box` rounded outwards, at least one pixel each way.
absl::StatusOr<Mask> DecodePngCrop(absl::string_view png,
                                   const v1::BoundingBox& box);

// Whichever of the two the detection has; no pixels if it has neither.
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
// Pixels of no class become `ignore`, 65535; those of two are an error.
absl::StatusOr<IndexMap> DecodeClassRles(const v1::ClassRleList& list,
                                         int width, int height);

// Whichever of the three the result has, of the size that it claims.
absl::StatusOr<IndexMap> DecodeIndexMap(const v1::SegmentResult& result);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_MASKS_H_
