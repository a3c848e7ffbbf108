#ifndef SFMAMBA_BASE_MASK_H_
#define SFMAMBA_BASE_MASK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sfmamba::base {

// A mask of a picture. `data` covers only the rectangle whose top left pixel is
// (left, top). Pixels outside the rectangle are not set.
struct Mask {
  int left = 0, top = 0, width = 0, height = 0;  // In pixels of the picture.
  std::vector<uint8_t> data;                     // [height, width], 0 or 1

  // Returns true if pixel (x, y) of the picture is set.
  bool At(int x, int y) const {
    return x >= left && x < left + width && y >= top && y < top + height &&
           data[size_t{1} * (y - top) * width + x - left] != 0;
  }

  // Returns the number of set pixels.
  int64_t Area() const { return std::count(data.begin(), data.end(), 1); }
};

// The set pixels of consecutive lines of a mask. The lines are either rows or
// columns.
struct LineRuns {
  // The edges of all lines, one line after the other. Each line has an even
  // number of ascending edges. Its pixels from the first edge up to the second
  // are set, then from the third up to the fourth, and so on.
  std::vector<int> edges;
  // For each line, the index after its last edge.
  std::vector<size_t> line_ends;

  int lines() const { return static_cast<int>(line_ends.size()); }
  absl::Span<const int> line(int i) const {
    const size_t begin = i == 0 ? 0 : line_ends[i - 1];
    return absl::MakeConstSpan(edges).subspan(begin, line_ends[i] - begin);
  }
  void clear() {
    edges.clear();
    line_ends.clear();
  }
};

// A mask of a picture that computes its set pixels on demand, some lines at a
// time. Thread-safe.
class LineMask {
 public:
  // The rectangle, in pixels of the picture, outside which no pixel is set.
  struct Bounds {
    int left = 0, top = 0, width = 0, height = 0;
  };

  virtual ~LineMask() = default;

  virtual Bounds bounds() const = 0;
  // These append the set pixels of the rows, or columns, [begin, end) to
  // `runs`. The lines must lie inside bounds(). All coordinates are pixels of
  // the whole picture.
  virtual void AddRows(int begin, int end, LineRuns* runs) const = 0;
  virtual void AddColumns(int begin, int end, LineRuns* runs) const = 0;
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_MASK_H_
