#ifndef SFMAMBA_BASE_COCO_RLE_H_
#define SFMAMBA_BASE_COCO_RLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/image_header.h"
#include "base/mask.h"

namespace sfmamba::base {

// Writes COCO's compressed run lengths of a mask. The mask is read column by
// column, and the lengths alternate between unset and set pixels, beginning
// with unset ones. From the fourth on, the difference to the length two before
// is stored. Each number is divided into groups of 5 bits, the lowest first;
// 0x20 is added if more groups follow, and 48 to each group. Source:
// docs/heads.md, "COCO run lengths".
//
//   RleWriter rle;
//   rle.Add(3, 7);  // Pixels 3 to 6 are set,
//   rle.Add(9, 10);
//   rle.Finish(12);  // The counts 3 4 2 1 2.
//
// Thread-compatible.
class RleWriter {
 public:
  // Sets the pixels [begin, end), which are counted column by column. `begin`
  // must not be below the last call's `end`. Adjoining pixels become one run.
  void Add(int64_t begin, int64_t end) {
    if (begin == end) return;
    if (begin != end_) {
      if (end_ > 0) Append(end_ - begin_);
      Append(begin - end_);
      begin_ = begin;
    } else if (end_ == 0) {  // The first pixel is set.
      Append(0);
    }
    end_ = end;
  }

  // The string of a mask of `pixels` pixels; once.
  std::string Finish(int64_t pixels);

  bool empty() const { return end_ == 0; }        // Whether no pixel is set.
  int64_t bytes() const { return text_.size(); }  // Written so far.

 private:
  void Append(int64_t count);

  std::string text_;      // Lacks only the last set run, which may still grow.
  int64_t counts_ = 0;    // Counts in text_.
  int64_t last_[2] = {};  // The last count of each kind, unset and set.
  int64_t begin_ = 0;     // The last set run.
  int64_t end_ = 0;
};

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

  // The bytes of the string of class `id` so far.
  int64_t bytes(int id) const { return writers_[id].bytes(); }

  // The compressed string of class `id`, which is empty if the class does not
  // occur; once, when done().
  std::string Take(int id);

 private:
  const int height_;
  const int width_;
  std::vector<RleWriter> writers_;  // By class.
  int columns_ = 0;                 // Columns read so far.
};

// Reads a compressed string: the lengths of the runs, beginning with unset
// pixels. INVALID_ARGUMENT unless they are numbers that add up to `pixels`.
absl::StatusOr<std::vector<int64_t>> ReadRleCounts(absl::string_view counts,
                                                   int64_t pixels);

// Decodes a compressed string for a picture of `height` x `width`. The mask is
// the smallest rectangle with all set pixels, 0 x 0 if there are none. Returns
// the errors of CheckImageSize(), and INVALID_ARGUMENT unless the counts are
// numbers that add up to the picture's pixels.
absl::StatusOr<Mask> DecodeRle(absl::string_view counts, int height, int width,
                               const ImageLimits& limits);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_COCO_RLE_H_
