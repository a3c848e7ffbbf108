#include "tests/testing/line_masks.h"

#include "absl/types/span.h"

namespace sfmamba {
namespace {

// Appends the runs of one line, whose pixels are [begin, end). `is_set(i)`
// returns true if pixel i is set.
template <typename IsSet>
void AddLine(int begin, int end, const IsSet& is_set, base::LineRuns* runs) {
  bool set = false;
  for (int i = begin; i < end; ++i) {
    if (is_set(i) == set) continue;
    runs->edges.push_back(i);
    set = !set;
  }
  if (set) runs->edges.push_back(end);
  runs->line_ends.push_back(runs->edges.size());
}

base::Mask Unset(const base::LineMask& mask) {
  const base::LineMask::Bounds bounds = mask.bounds();
  base::Mask pixels{bounds.left, bounds.top, bounds.width, bounds.height, {}};
  pixels.data.resize(size_t{1} * bounds.width * bounds.height);
  return pixels;
}

// Sets the pixels of the runs in `mask`. The edges of the runs are coordinates
// in the picture. `origin` is the coordinate of the first pixel of a line.
void Set(const base::LineRuns& runs, int origin, size_t pixel_stride,
         size_t line_stride, base::Mask* mask) {
  for (int line = 0; line < runs.lines(); ++line) {
    const absl::Span<const int> edges = runs.line(line);
    for (size_t k = 0; k < edges.size(); k += 2) {
      for (int i = edges[k]; i < edges[k + 1]; ++i) {
        mask->data.at((i - origin) * pixel_stride + line * line_stride) = 1;
      }
    }
  }
}

}  // namespace

void PixelMask::AddRows(int begin, int end, base::LineRuns* runs) const {
  for (int y = begin; y < end; ++y) {
    AddLine(
        mask_.left, mask_.left + mask_.width,
        [&](int x) { return mask_.At(x, y); }, runs);
  }
}

void PixelMask::AddColumns(int begin, int end, base::LineRuns* runs) const {
  for (int x = begin; x < end; ++x) {
    AddLine(
        mask_.top, mask_.top + mask_.height,
        [&](int y) { return mask_.At(x, y); }, runs);
  }
}

base::Mask PixelsOf(const base::LineMask& mask) {
  base::Mask pixels = Unset(mask);
  base::LineRuns runs;
  mask.AddRows(pixels.top, pixels.top + pixels.height, &runs);
  Set(runs, pixels.left, 1, pixels.width, &pixels);
  return pixels;
}

base::Mask PixelsByColumns(const base::LineMask& mask) {
  base::Mask pixels = Unset(mask);
  base::LineRuns runs;
  mask.AddColumns(pixels.left, pixels.left + pixels.width, &runs);
  Set(runs, pixels.top, pixels.width, 1, &pixels);
  return pixels;
}

}  // namespace sfmamba
