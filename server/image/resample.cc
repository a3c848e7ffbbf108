#include "server/image/resample.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/bicubic_filter.h"
#include "base/steady_clock.h"
#include "kernels/pixels/fixed_point_resize.h"

namespace sfmamba::image {
namespace {

using kernels::FixedPointTaps;

// While a picture is resized, the watch is checked after each kWatchedPixels
// pixels of the picture. Resizing this many pixels takes some hundred
// microseconds.
constexpr int64_t kWatchedPixels = 1 << 17;

static_assert(kernels::kWeightFractionBits ==
              base::BicubicFilter::kFractionBits);

// Returns the weights for resizing a side of a picture from `in` to `out`
// pixels. Includes only the weights of the output pixels [begin, begin + size).
// Returns nullopt if the side keeps its size.
std::optional<FixedPointTaps> MakeTaps(int in, int out, int begin, int size) {
  if (in == out) return std::nullopt;
  base::BicubicFilter filter(in, out);
  FixedPointTaps all(size, filter.most_taps());
  base::BicubicFilter::Taps taps;
  for (int i = 0; i < size; ++i) {
    filter.TapsOf(begin + i, &taps);
    all.Set(i, taps.first, taps.weights.data(), taps.weights.size());
  }
  return all;
}

}  // namespace

RowResizer::RowResizer(int width, int height, const ResizeWindow& window)
    : width_(width),
      height_(height),
      window_(window),
      row_bytes_(size_t{3} * window.columns),
      across_(MakeTaps(width, window.width, window.left, window.columns)),
      down_(MakeTaps(height, window.height, window.top, window.rows)),
      begin_(FirstOf(0)),
      end_(EndOf(window.rows - 1)),
      // Each row of rows_ has extra bytes, because the kernel may read past the
      // last pixel of a row.
      stride_((std::max(across_ ? kernels::ReadableRowBytes(*across_) : 0,
                        size_t{3} * width) +
               15) /
              16 * 16),
      rows_(kUnaligned + kRows * stride_),
      // narrow_ must have room for all picture rows that one output row needs,
      // and for the kAtOnce rows that the next Narrow() adds.
      slots_((down_ ? down_->max_count() : 1) + kAtOnce),
      narrow_(slots_ * row_bytes_),
      taken_(begin_),
      result_(row_bytes_ * window.rows) {}

int RowResizer::FirstOf(int output) const {
  return down_ ? down_->first(output) : window_.top + output;
}

int RowResizer::EndOf(int output) const {
  return down_ ? down_->end(output) : window_.top + output + 1;
}

uint8_t* RowResizer::Row(int y) {
  if (y < begin_) return RowAt(0);  // The window does not use row `y`.
  const int slot = (y - begin_) % kRows;
  if (slot == 0 && y > begin_) TakeRows();
  return RowAt(slot);
}

std::vector<uint8_t> RowResizer::Finish() {
  TakeRows();
  return std::move(result_);
}

void RowResizer::TakeRows() {
  if (taken_ == end_) return;
  const absl::Time start = base::SteadyNow();
  for (int slot = 0; slot < kRows && taken_ < end_; slot += kAtOnce) {
    const uint8_t* rows[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) rows[i] = RowAt(slot + i);
    Take(rows);
  }
  spent_ += base::SteadyNow() - start;
}

absl::Status RowResizer::TakeAll(const uint8_t* rgb, size_t stride,
                                 const base::DecodeWatch& watch) {
  const size_t row_bytes = size_t{3} * width_;
  const uint8_t* const end = rgb + stride * (height_ - 1) + row_bytes;
  int64_t unwatched = 0;  // The number of pixels resized since the last check.
  while (taken_ < end_) {
    const uint8_t* rows[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      rows[i] = rgb + stride * std::min(taken_ + i, height_ - 1);
      // Rows near the picture's end are copied to rows_, because the kernel may
      // read past the end of a row.
      if (end - rows[i] < static_cast<int64_t>(stride_)) {
        memcpy(RowAt(i), rows[i], row_bytes);
        rows[i] = RowAt(i);
      }
    }
    Take(rows);
    unwatched += int64_t{kAtOnce} * width_;
    if (unwatched < kWatchedPixels) continue;
    if (watch.Expired()) return watch.status();
    unwatched = 0;
  }
  return absl::OkStatus();
}

void RowResizer::Take(const uint8_t* const* rows) {
  Narrow(rows);
  taken_ = std::min(taken_ + kAtOnce, end_);
  for (; made_ < window_.rows && EndOf(made_) <= taken_; ++made_) {
    Combine(made_);
  }
}

void RowResizer::Narrow(const uint8_t* const* rows) {
  kernels::ResizeRowsArgs args;
  for (int i = 0; i < kAtOnce; ++i) {
    args.in[i] = rows[i];
    args.out[i] = &narrow_[(taken_ + i) % slots_ * row_bytes_];
  }
  if (across_) {
    args.taps = &*across_;
    kernels::ResizeRows(args);
    return;
  }
  for (int i = 0; i < kAtOnce; ++i) {
    memcpy(args.out[i], args.in[i] + 3 * window_.left, row_bytes_);
  }
}

void RowResizer::Combine(int output) {
  uint8_t* out = &result_[row_bytes_ * output];
  const int first = FirstOf(output), count = EndOf(output) - first;
  std::vector<const uint8_t*> rows(count);
  for (int i = 0; i < count; ++i) {
    rows[i] = &narrow_[(first + i) % slots_ * row_bytes_];
  }
  if (down_) {
    const int size = row_bytes_;
    kernels::CombineRows({&*down_, output, rows.data(), size, out});
  } else {
    memcpy(out, rows[0], row_bytes_);
  }
}

absl::StatusOr<std::vector<uint8_t>> ResizeBicubic(
    const uint8_t* rgb, int width, int height, const ResizeWindow& window,
    const base::DecodeWatch& watch, size_t stride) {
  RowResizer resizer(width, height, window);
  if (stride == 0) stride = size_t{3} * width;
  const absl::Status status = resizer.TakeAll(rgb, stride, watch);
  if (!status.ok()) return status;
  return resizer.Finish();
}

}  // namespace sfmamba::image
