#include "server/image/rle.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace sfmamba::image {
namespace {

// Columns that are searched together: memory is read by rows, of which a cache
// line of bytes is used at a time.
constexpr int kBand = 64;

// Appends to changes[x] each row y > 0 in which the pixel in column x differs
// from the one above it; `columns` of them, in rows `stride` pixels apart.
template <typename Pixel>
void FindChanges(const Pixel* pixels, int64_t stride, int height, int columns,
                 std::array<std::vector<int>, kBand>& changes) {
  constexpr int kWord = sizeof(uint64_t) / sizeof(Pixel);
  for (int y = 1; y < height; ++y) {
    const Pixel* row = pixels + stride * y;
    const Pixel* above = row - stride;
    int x = 0;
    for (; x + kWord <= columns; x += kWord) {  // Most words are equal.
      uint64_t a, b;
      std::memcpy(&a, row + x, sizeof(a));
      std::memcpy(&b, above + x, sizeof(b));
      if (a == b) continue;
      for (int i = x; i < x + kWord; ++i) {
        if (row[i] != above[i]) changes[i].push_back(y);
      }
    }
    for (; x < columns; ++x) {
      if (row[x] != above[x]) changes[x].push_back(y);
    }
  }
}

// Calls visit(x, y, end, pixel) for each run of equal pixels, [y, end) in
// column x: column by column, each from the top.
template <typename Pixel, typename Visit>
void ForEachRun(const Pixel* pixels, int height, int width,
                const Visit& visit) {
  if (height == 0) return;
  std::array<std::vector<int>, kBand> changes;
  for (int left = 0; left < width; left += kBand) {
    const int columns = std::min(kBand, width - left);
    for (std::vector<int>& column : changes) column.clear();
    FindChanges(pixels + left, width, height, columns, changes);
    for (int x = 0; x < columns; ++x) {
      int y = 0;
      changes[x].push_back(height);
      for (const int end : changes[x]) {
        visit(left + x, y, end, pixels[int64_t{1} * y * width + left + x]);
        y = end;
      }
    }
  }
}

void AppendNumber(int64_t number, std::string* text) {
  while (true) {
    const int group = number & 0x1f;
    number >>= 5;
    // The last group's highest bit is the sign of what it ends.
    const bool last = number == ((group & 0x10) != 0 ? -1 : 0);
    text->push_back(static_cast<char>((last ? group : group | 0x20) + 48));
    if (last) return;
  }
}

}  // namespace

void RunLengths::Add(int64_t begin, int64_t end) {
  if (!counts_.empty() && begin == end_) {
    counts_.back() += end - begin;
  } else {
    counts_.push_back(begin - end_);
    counts_.push_back(end - begin);
  }
  end_ = end;
}

std::vector<int64_t> RunLengths::Counts(int64_t pixels) const {
  std::vector<int64_t> counts = counts_;
  if (pixels > end_ || counts.empty()) counts.push_back(pixels - end_);
  return counts;
}

std::string CompressCounts(absl::Span<const int64_t> counts) {
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    AppendNumber(i > 2 ? counts[i] - counts[i - 2] : counts[i], &text);
  }
  return text;
}

std::string EncodeRle(const model::InstanceMask& mask, int left, int top,
                      int height, int width) {
  RunLengths runs;
  ForEachRun(mask.data.data(), mask.height, mask.width,
             [&](int x, int y, int end, uint8_t set) {
               if (!set) return;
               const int64_t column =
                   int64_t{1} * (left + mask.left + x) * height + top +
                   mask.top;
               runs.Add(column + y, column + end);
             });
  return CompressCounts(runs.Counts(int64_t{1} * height * width));
}

std::vector<std::string> EncodeRlePerClass(const std::vector<uint16_t>& map,
                                           int height, int width, int classes) {
  std::vector<RunLengths> runs(classes);
  std::vector<bool> occurs(classes);
  ForEachRun(map.data(), height, width,
             [&](int x, int y, int end, uint16_t label) {
               if (label >= classes) return;
               const int64_t column = int64_t{1} * x * height;
               runs[label].Add(column + y, column + end);
               occurs[label] = true;
             });
  std::vector<std::string> strings(classes);
  for (int i = 0; i < classes; ++i) {
    if (!occurs[i]) continue;
    strings[i] = CompressCounts(runs[i].Counts(map.size()));
  }
  return strings;
}

}  // namespace sfmamba::image
