#ifndef SFMAMBA_BASE_COCO_RLE_H_
#define SFMAMBA_BASE_COCO_RLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/image_header.h"
#include "base/mask.h"

namespace sfmamba::base {

// COCO's run lengths of a mask: it is read column by column, and the lengths
// alternate between unset and set pixels, beginning with unset ones. Source:
// docs/heads.md, "COCO run lengths".
//
//   RunLengths runs;
//   runs.Add(3, 7);  // Pixels 3 to 6 are set,
//   runs.Add(9, 10);
//   runs.Counts(12);  // 3 4 2 1 2
//
// Thread-compatible.
class RunLengths {
 public:
  // Pixels [begin, end) are set: numbers of pixels in the order of columns, not
  // before the end of the Add() before. Pixels that adjoin become one run.
  void Add(int64_t begin, int64_t end);

  // The run lengths of a mask of `pixels` pixels.
  std::vector<int64_t> Counts(int64_t pixels) const;

 private:
  std::vector<int64_t> counts_;  // An even number: up to the last set pixel.
  int64_t end_ = 0;              // Their sum.
};

// COCO's compressed string: from the fourth on, a count is its difference to
// the one two before it; each is cut into groups of 5 bits, the low ones first,
// with 0x20 for "more follows" and 48 added.
std::string CompressCounts(absl::Span<const int64_t> counts);

// Of `mask` in a picture of `height` x `width`, shifted by `left` and `top`
// pixels. It must lie inside the picture then.
std::string EncodeRle(const Mask& mask, int left, int top, int height,
                      int width);

// Of each class of a map [height, width] of class indices: one string a class
// in 0 .. classes - 1, empty for those that do not occur. Larger indices belong
// to no class.
std::vector<std::string> EncodeRlePerClass(const std::vector<uint16_t>& map,
                                           int height, int width, int classes);

// The mask of a compressed string in a picture of `height` x `width`: the
// smallest rectangle with all set pixels, 0 x 0 if there are none. The errors
// of CheckImageSize(); INVALID_ARGUMENT unless the counts are numbers that add
// up to the picture's pixels.
absl::StatusOr<Mask> DecodeRle(absl::string_view counts, int height, int width,
                               const ImageLimits& limits);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_COCO_RLE_H_
