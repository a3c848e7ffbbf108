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

// Writes a mask as COCO's compressed run lengths. The mask is read column by
// column. The lengths of unset and set pixels alternate, beginning with unset
// pixels. From the fourth length on, only the difference to the length two
// before is stored. Each number is divided into groups of 5 bits, the lowest
// group first. Each group becomes a character: 48 is added to the group, and
// also 0x20 if more groups of the number follow. Source: docs/heads.md, "COCO
// run lengths".
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
  // must not be below `end` of the previous call. Runs without a gap are
  // joined.
  void Add(int64_t begin, int64_t end) {
    if (begin == end) return;
    if (begin != end_) {
      if (end_ > 0) Append(end_ - begin_);
      Append(begin - end_);
      begin_ = begin;
      // The first run begins at pixel 0, so the counts begin with 0 unset
      // pixels.
    } else if (end_ == 0) {
      Append(0);
    }
    end_ = end;
  }

  // Returns the string of a mask of `pixels` pixels. May be called only once.
  std::string Finish(int64_t pixels);

  bool empty() const { return end_ == 0; }  // No pixel is set.
  // Returns the length of the string so far.
  int64_t bytes() const { return text_.size(); }

 private:
  void Append(int64_t count);

  // The string of all runs except the last set run, which may still grow.
  std::string text_;
  int64_t counts_ = 0;    // Number of run lengths in text_.
  int64_t last_[2] = {};  // The last length of unset and of set pixels.
  // The last set run is [begin_, end_).
  int64_t begin_ = 0;
  int64_t end_ = 0;
};

// Computes the run lengths of each class of a map [height, width] of class
// indices. The map may be filled and read some columns at a time. Indices of at
// least `classes` belong to no class. Thread-compatible.
class ClassRunLengths {
 public:
  ClassRunLengths(int height, int width, int classes);

  // Reads the next `columns` columns of `map`, or the remaining ones if there
  // are fewer. Columns are read in blocks of 64, so multiples of 64 are
  // fastest.
  void AddColumns(int columns, const std::vector<uint16_t>& map);
  bool done() const { return columns_ == width_; }

  // Returns the length of the string of class `id` so far.
  int64_t bytes(int id) const { return writers_[id].bytes(); }

  // Returns the compressed string of class `id`. It is empty if the class does
  // not occur. May be called once per class, when done() is true.
  std::string Take(int id);

 private:
  const int height_;
  const int width_;
  std::vector<RleWriter> writers_;  // By class.
  int columns_ = 0;                 // Columns read so far.
};

// Decodes a compressed string. Returns the lengths of the runs, of which the
// first has unset pixels. Returns INVALID_ARGUMENT unless the string contains
// numbers that add up to `pixels`.
absl::StatusOr<std::vector<int64_t>> ReadRleCounts(absl::string_view counts,
                                                   int64_t pixels);

// Decodes a compressed string for a picture of `height` x `width`. The returned
// mask covers the smallest rectangle that contains all set pixels. It is 0 x 0
// if no pixel is set. Returns the errors of CheckImageSize(). Returns
// INVALID_ARGUMENT unless the string contains numbers that add up to the
// picture's pixels.
absl::StatusOr<Mask> DecodeRle(absl::string_view counts, int height, int width,
                               const ImageLimits& limits);

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_COCO_RLE_H_
