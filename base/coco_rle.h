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
  // Sets the pixels [begin, end), which are counted column by column. `begin`
  // must not be below the last call's `end`. Adjoining pixels become one run.
  void Add(int64_t begin, int64_t end);

  // Returns the run lengths of a mask of `pixels` pixels.
  std::vector<int64_t> Counts(int64_t pixels) const;

  bool empty() const { return counts_.empty(); }
  int64_t runs() const { return counts_.size(); }  // Of both kinds.

 private:
  std::vector<int64_t> counts_;  // Up to the last set pixel, so an even number.
  int64_t end_ = 0;              // The sum of counts_.
};

// Returns COCO's compressed string. From the fourth count on, the difference to
// the count two before is stored. Each number is divided into groups of 5 bits,
// the lowest first; 0x20 is added if more groups follow, and 48 to each group.
std::string CompressCounts(absl::Span<const int64_t> counts);

// Returns the compressed string of `mask`, shifted by `left` and `top` pixels,
// in a picture of `height` x `width`. The shifted mask must lie inside the
// picture.
std::string EncodeRle(const Mask& mask, int left, int top, int height,
                      int width);

// The run lengths of each class of a map [height, width] of class indices, read
// some columns at a time. Indices of `classes` and above belong to no class.
// Thread-compatible.
class ClassRunLengths {
 public:
  ClassRunLengths(int height, int width, int classes);

  // Reads the next `columns` columns of `map`, or those that are left. It reads
  // 64 columns at once, so that multiples of 64 are fastest.
  void AddColumns(int columns, const std::vector<uint16_t>& map);
  bool done() const { return columns_ == width_; }

  // The number of runs of class `id`, and their compressed string, which is
  // empty if the class does not occur. Only when done().
  int64_t runs(int id) const { return runs_[id].runs(); }
  std::string Compress(int id) const;

 private:
  const int height_;
  const int width_;
  std::vector<RunLengths> runs_;  // By class.
  int columns_ = 0;               // That have been read.
};

// Returns one compressed string for each class 0 .. classes - 1 of a map
// [height, width] of class indices. It is empty for classes that do not occur.
// Larger indices belong to no class.
std::vector<std::string> EncodeRlePerClass(const std::vector<uint16_t>& map,
                                           int height, int width, int classes);

// Decodes a compressed string for a picture of `height` x `width`. The mask is
// the smallest rectangle with all set pixels, 0 x 0 if there are none. Returns
// the errors of CheckImageSize(), and INVALID_ARGUMENT unless the counts are
// numbers that add up to the picture's pixels.
absl::StatusOr<Mask> DecodeRle(absl::string_view counts, int height, int width,
                               const ImageLimits& limits);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_COCO_RLE_H_
