#include "base/coco_rle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sfmamba::base {
namespace {

// The number of columns in which FindChanges() looks for changes at a time. The
// map of classes lies in memory row by row. If only one column were searched at
// a time, only one pixel of each cache line would be used.
constexpr int kBand = 64;

// Finds the changes in each of the `columns` columns. Row y > 0 is appended to
// changes[x] if its pixel in column x differs from the pixel above it. Rows lie
// `stride` pixels apart.
void FindChanges(const uint16_t* pixels, int64_t stride, int height,
                 int columns, std::array<std::vector<int>, kBand>& changes) {
  constexpr int kWord = sizeof(uint64_t) / sizeof(uint16_t);
  for (int y = 1; y < height; ++y) {
    const uint16_t* row = pixels + stride * y;
    const uint16_t* above = row - stride;
    int x = 0;
    // Compares four pixels at a time. Most of them equal the pixels above them.
    for (; x + kWord <= columns; x += kWord) {
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

void AppendNumber(int64_t number, std::string* text) {
  while (true) {
    const int group = number & 0x1f;
    number >>= 5;
    // The highest bit of a number's last group is the number's sign.
    const bool last = number == ((group & 0x10) != 0 ? -1 : 0);
    text->push_back(static_cast<char>((last ? group : group | 0x20) + 48));
    if (last) return;
  }
}

// Reads the number that begins at index `*at` of `counts`. Moves `*at` to the
// character after the number. Returns false if the number is incomplete or too
// long. Source: docs/heads.md, "COCO run lengths".
bool ReadNumber(absl::string_view counts, size_t* at, int64_t* number) {
  constexpr int kMaxShift = 35;  // Bits. A signed run length has at most 32.
  *number = 0;
  for (int shift = 0; shift < kMaxShift && *at < counts.size(); shift += 5) {
    const int group = counts[(*at)++] - '0';
    if (group < 0 || group > 0x3F) return false;
    *number |= int64_t{group & 0x1F} << shift;
    if ((group & 0x20) != 0) continue;
    if ((group & 0x10) != 0) *number -= int64_t{1} << (shift + 5);
    return true;
  }
  return false;
}

// Grows the rectangle `bounds` so that it includes a run of set pixels. The run
// consists of `length` pixels, the first of which is pixel `begin`. Pixels are
// counted column by column in a picture of `height` rows.
void Include(int64_t begin, int64_t length, int height, Mask* bounds) {
  const int first_column = begin / height;
  const int last_column = (begin + length - 1) / height;
  const bool one_column = first_column == last_column;
  const int first_row = one_column ? begin % height : 0;
  const int last_row = one_column ? first_row + length - 1 : height - 1;
  if (bounds->width == 0) {
    bounds->left = first_column;
    bounds->top = first_row;
  }
  // `bottom` is the row after the last one.
  const int bottom = std::max(bounds->top + bounds->height, last_row + 1);
  bounds->top = std::min(bounds->top, first_row);
  bounds->height = bottom - bounds->top;
  bounds->width = last_column + 1 - bounds->left;
}

}  // namespace

void RleWriter::Append(int64_t count) {
  int64_t& last = last_[counts_ % 2];
  AppendNumber(counts_ > 2 ? count - last : count, &text_);
  last = count;
  ++counts_;
}

std::string RleWriter::Finish(int64_t pixels) {
  if (!empty()) Append(end_ - begin_);
  if (pixels > end_ || empty()) Append(pixels - end_);
  return std::move(text_);
}

ClassRunLengths::ClassRunLengths(int height, int width, int classes)
    : height_(height), width_(width), writers_(classes) {}

void ClassRunLengths::AddColumns(int columns,
                                 const std::vector<uint16_t>& map) {
  const int last = std::min(columns_ + columns, width_);
  std::array<std::vector<int>, kBand> changes;
  for (; columns_ < last && height_ > 0; columns_ += kBand) {
    columns = std::min(kBand, last - columns_);
    for (std::vector<int>& column : changes) column.clear();
    FindChanges(&map[columns_], width_, height_, columns, changes);
    for (int x = 0; x < columns; ++x) {
      const int64_t column = int64_t{1} * (columns_ + x) * height_;
      int y = 0;
      changes[x].push_back(height_);
      for (const int end : changes[x]) {
        const int label = map[int64_t{1} * y * width_ + columns_ + x];
        if (label < writers_.size()) {
          writers_[label].Add(column + y, column + end);
        }
        y = end;
      }
    }
  }
  columns_ = last;
}

std::string ClassRunLengths::Take(int id) {
  if (writers_[id].empty()) return "";
  return writers_[id].Finish(int64_t{1} * height_ * width_);
}

absl::StatusOr<std::vector<int64_t>> ReadRleCounts(absl::string_view counts,
                                                   int64_t pixels) {
  std::vector<int64_t> runs;
  int64_t sum = 0;
  for (size_t at = 0; at < counts.size();) {
    int64_t run;
    if (!ReadNumber(counts, &at, &run)) {
      return absl::InvalidArgumentError(absl::StrCat("no number at byte ", at));
    }
    if (runs.size() > 2) run += runs[runs.size() - 2];
    if (run < 0 || run > pixels - sum) {
      return absl::InvalidArgumentError(
          absl::StrCat("run ", runs.size(), " has ", run, " pixels, ",
                       pixels - sum, " are left"));
    }
    sum += run;
    runs.push_back(run);
  }
  if (sum != pixels) {
    return absl::InvalidArgumentError(
        absl::StrCat("the runs have ", sum, " pixels, expected ", pixels));
  }
  return runs;
}

absl::StatusOr<Mask> DecodeRle(absl::string_view counts, int height, int width,
                               const ImageLimits& limits) {
  const absl::Status status = CheckImageSize(width, height, limits);
  if (!status.ok()) return status;
  const absl::StatusOr<std::vector<int64_t>> runs =
      ReadRleCounts(counts, int64_t{1} * width * height);
  if (!runs.ok()) return runs.status();

  Mask mask;
  int64_t begin = 0;
  for (size_t i = 0; i < runs->size(); begin += (*runs)[i++]) {
    if (i % 2 == 1 && (*runs)[i] > 0) Include(begin, (*runs)[i], height, &mask);
  }
  mask.data.resize(size_t{1} * mask.width * mask.height);
  begin = 0;
  for (size_t i = 0; i < runs->size(); begin += (*runs)[i++]) {
    if (i % 2 == 0) continue;
    int column = begin / height;
    int row = begin % height;
    for (int64_t left = (*runs)[i]; left > 0; --left) {
      mask.data[size_t{1} * (row - mask.top) * mask.width + column -
                mask.left] = 1;
      if (++row == height) row = 0, ++column;
    }
  }
  return mask;
}

}  // namespace sfmamba::base
