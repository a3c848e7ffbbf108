#include "client/eval/run_lengths.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/coco_rle.h"

namespace sfmamba::client {
namespace {

// Divides the picture into the longest runs in which neither mask changes.
// Calls `use(length, in_a, in_b)` for each run. `in_a` is true if the run's
// pixels are set in `a`, and `in_b` if they are set in `b`.
template <typename Use>
void ForEachStretch(const RunLengths& a, const RunLengths& b, Use use) {
  size_t i = 0, j = 0;
  // The current runs are number i - 1 of `a` and number j - 1 of `b`. These
  // variables count the pixels of the current runs that are not yet visited.
  int64_t left_a = 0, left_b = 0;
  while (true) {
    while (left_a == 0 && i < a.counts.size()) left_a = a.counts[i++];
    while (left_b == 0 && j < b.counts.size()) left_b = b.counts[j++];
    const int64_t length = std::min(left_a, left_b);
    if (length == 0) return;
    use(length, i % 2 == 0, j % 2 == 0);
    left_a -= length;
    left_b -= length;
  }
}

struct Point {
  int x, y;
};

// Appends the points of the line from `from` to `to`. Neighbouring points
// differ by at most 1 in both coordinates.
void AddLine(Point from, Point to, std::vector<Point>* points) {
  const int dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
  const bool flat = dx >= dy;
  const bool flip = flat ? from.x > to.x : from.y > to.y;
  if (flip) std::swap(from, to);
  const int steps = std::max(dx, dy);
  const double slope = steps == 0 ? 0
                       : flat     ? static_cast<double>(to.y - from.y) / dx
                                  : static_cast<double>(to.x - from.x) / dy;
  for (int i = 0; i <= steps; ++i) {
    const int d = flip ? steps - i : i;
    if (flat) {
      points->push_back(
          {from.x + d, static_cast<int>(from.y + slope * d + 0.5)});
    } else {
      points->push_back(
          {static_cast<int>(from.x + slope * d + 0.5), from.y + d});
    }
  }
}

}  // namespace

int64_t RunLengths::Area() const {
  int64_t area = 0;
  for (size_t i = 1; i < counts.size(); i += 2) area += counts[i];
  return area;
}

absl::StatusOr<RunLengths> FromCounts(std::vector<int64_t> counts, int width,
                                      int height) {
  const int64_t pixels = int64_t{1} * width * height;
  int64_t left = pixels;
  for (const int64_t count : counts) {
    if (count < 0 || count > left) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a run of ", count, " pixels, expected 0 to ", left, " there"));
    }
    left -= count;
  }
  if (left > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("runs of ", pixels - left, " pixels, expected ", pixels));
  }
  return RunLengths{width, height, std::move(counts)};
}

absl::StatusOr<RunLengths> FromCompressed(absl::string_view counts, int width,
                                          int height) {
  absl::StatusOr<std::vector<int64_t>> runs =
      base::ReadRleCounts(counts, int64_t{1} * width * height);
  if (!runs.ok()) return runs.status();
  return RunLengths{width, height, *std::move(runs)};
}

RunLengths FromPolygon(const std::vector<double>& polygon, int width,
                       int height) {
  constexpr double kScale = 5;  // Steps of the outline per pixel.
  // In pixels. Coordinates are clamped to [-far, far], which limits the
  // outline's length.
  const double far = 4.0 * std::max(width, height);
  const size_t count = polygon.size() / 2;
  const auto at = [&](size_t i) {
    const auto fine = [far](double value) {
      return static_cast<int>(kScale * std::clamp(value, -far, far) + 0.5);
    };
    return Point{fine(polygon[2 * (i % count)]),
                 fine(polygon[2 * (i % count) + 1])};
  };
  std::vector<Point> outline;
  for (size_t i = 0; i < count; ++i) AddLine(at(i), at(i + 1), &outline);
  // In each column of pixels, the mask's value changes where the outline
  // crosses the vertical line through the column's centre.
  std::vector<int64_t> changes;
  for (size_t i = 1; i < outline.size(); ++i) {
    const Point &a = outline[i - 1], &b = outline[i];
    if (a.x == b.x) continue;
    const double x = (std::min(a.x, b.x) + 0.5) / kScale - 0.5;
    if (std::floor(x) != x || x < 0 || x > width - 1) continue;
    const double y = (std::min(a.y, b.y) + 0.5) / kScale - 0.5;
    changes.push_back(
        static_cast<int64_t>(x) * height +
        static_cast<int64_t>(std::ceil(std::clamp<double>(y, 0, height))));
  }
  std::sort(changes.begin(), changes.end());
  changes.push_back(int64_t{1} * width * height);
  RunLengths mask{width, height, {}};
  int64_t last = 0;
  for (const int64_t change : changes) {
    mask.counts.push_back(change - last);
    last = change;
  }
  return mask;
}

RunLengths Union(const RunLengths& a, const RunLengths& b) {
  RunLengths sum{a.width, a.height, {0}};
  ForEachStretch(a, b, [&sum](int64_t length, bool in_a, bool in_b) {
    const bool set = in_a || in_b;
    if (set != (sum.counts.size() % 2 == 0)) sum.counts.push_back(0);
    sum.counts.back() += length;
  });
  return sum;
}

int64_t IntersectionArea(const RunLengths& a, const RunLengths& b) {
  int64_t area = 0;
  ForEachStretch(a, b, [&area](int64_t length, bool in_a, bool in_b) {
    if (in_a && in_b) area += length;
  });
  return area;
}

}  // namespace sfmamba::client
