#include "server/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "kernels/vision/fixed_point_resize.h"

namespace sfmamba::image {
namespace {

using kernels::FixedPointTaps;

// Pixels that are multiplied from one look at the watch to the next: some
// hundred microseconds.
constexpr int64_t kWatchedPixels = 1 << 19;

// Keys' cubic with a = -0.5.
double Cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// The weights of outputs begin .. begin + size - 1 of a side of `in` pixels
// resized to `out`. Follows Pillow operation by operation: doubles round too.
FixedPointTaps MakeTaps(int in, int out, int begin, int size) {
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(scale, 1.0);
  const double support = 2 * filter_scale;
  const double inverse = 1.0 / filter_scale;
  const int max_count = static_cast<int>(std::ceil(support)) * 2 + 1;
  FixedPointTaps taps(size, max_count);
  std::vector<double> exact(max_count);
  std::vector<int32_t> weights(max_count);
  for (int i = 0; i < size; ++i) {
    const double center = (begin + i + 0.5) * scale;
    const int low = std::max(0, static_cast<int>(center - support + 0.5));
    const int high = std::min(in, static_cast<int>(center + support + 0.5));
    double sum = 0;
    for (int k = low; k < high; ++k) {
      exact[k - low] = Cubic((k - center + 0.5) * inverse);
      sum += exact[k - low];
    }
    for (int k = 0; k < high - low; ++k) {
      const double weight = (sum != 0 ? exact[k] / sum : exact[k]) *
                            (1 << kernels::kWeightFractionBits);
      weights[k] = static_cast<int32_t>(weight + (weight < 0 ? -0.5 : 0.5));
    }
    taps.Set(i, low, weights.data(), high - low);
  }
  return taps;
}

// A picture's rows, resized to the window's columns, made a few at a time from
// the top. The last ones are kept.
class NarrowedRows {
 public:
  // `across`: null if the width stays. Rows before `begin` are not asked for,
  // nor any that lies more than `kept` rows before the last that was needed.
  NarrowedRows(const uint8_t* rgb, int width, int height, int left, int columns,
               const FixedPointTaps* across, int begin, int kept)
      : rgb_(rgb),
        row_bytes_(int64_t{3} * width),
        height_(height),
        left_(left),
        narrow_bytes_(size_t{3} * columns),
        across_(across),
        made_(across == nullptr ? height : begin) {
    if (across_ == nullptr) return;
    readable_ = kernels::ReadableRowBytes(*across_);
    slots_ = kept + kAtOnce;
    narrow_.resize(slots_ * narrow_bytes_);
    padded_.resize(kAtOnce * readable_);
  }

  // Rows up to it are made.
  int made() const { return made_; }

  // Makes the next rows. Requires made() to be less than the height.
  void MakeSome() {
    kernels::ResizeRowsArgs args;
    args.taps = across_;
    for (int i = 0; i < kAtOnce; ++i) {
      const int y = std::min(made_ + i, height_ - 1);
      args.in[i] = Readable(y, i);
      args.out[i] = &narrow_[y % slots_ * narrow_bytes_];
    }
    kernels::ResizeRows(args);
    made_ = std::min(made_ + kAtOnce, height_);
  }
  // Multiplied by MakeSome(), at most.
  int64_t pixels_at_once() const {
    return int64_t{1} * kAtOnce * across_->outputs() * across_->max_count();
  }

  const uint8_t* Row(int y) const {
    if (across_ == nullptr) return rgb_ + row_bytes_ * y + 3 * left_;
    return &narrow_[y % slots_ * narrow_bytes_];
  }

 private:
  static constexpr int kAtOnce = kernels::ResizeRowsArgs::kRowsAtOnce;

  // Row y, or a copy of it if the picture ends before what may be read.
  const uint8_t* Readable(int y, int i) {
    const uint8_t* row = rgb_ + row_bytes_ * y;
    if (row_bytes_ * (height_ - y) >= readable_) return row;
    uint8_t* copy = &padded_[i * readable_];
    memcpy(copy, row, std::min(row_bytes_, readable_));
    return copy;
  }

  const uint8_t* const rgb_;
  const int64_t row_bytes_;
  const int height_;
  const int left_;
  const size_t narrow_bytes_;
  const FixedPointTaps* const across_;
  int made_;
  int64_t readable_ = 0;
  int slots_ = 0;
  std::vector<uint8_t> narrow_;  // [slots_, narrow_bytes_]: y is in y % slots_.
  std::vector<uint8_t> padded_;  // [kAtOnce, readable_]
};

// Tells when enough was done to ask the watch.
class Pace {
 public:
  explicit Pace(const base::DecodeWatch& watch) : watch_(watch) {}

  // Whether the watch was asked, and has expired.
  bool Expired(int64_t pixels) {
    done_ += pixels;
    if (done_ < kWatchedPixels) return false;
    done_ = 0;
    return watch_.Expired();
  }

 private:
  const base::DecodeWatch& watch_;
  int64_t done_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<uint8_t>> ResizeBicubic(
    const uint8_t* rgb, int width, int height, const ResizeWindow& window,
    const base::DecodeWatch& watch) {
  std::optional<FixedPointTaps> across, down;
  if (width != window.width) {
    across = MakeTaps(width, window.width, window.left, window.columns);
  }
  if (height != window.height) {
    down = MakeTaps(height, window.height, window.top, window.rows);
  }
  const int most_rows = down ? down->max_count() : 1;
  NarrowedRows rows(rgb, width, height, window.left, window.columns,
                    across ? &*across : nullptr,
                    down ? down->first(0) : window.top, most_rows);
  const size_t row_bytes = size_t{3} * window.columns;
  std::vector<uint8_t> result(row_bytes * window.rows);
  std::vector<const uint8_t*> in(most_rows);
  Pace pace(watch);
  for (int i = 0; i < window.rows; ++i) {
    const int first = down ? down->first(i) : window.top + i;
    const int end = down ? down->end(i) : first + 1;
    while (rows.made() < end) {
      rows.MakeSome();
      if (pace.Expired(rows.pixels_at_once())) return watch.status();
    }
    if (pace.Expired(int64_t{1} * window.columns * (end - first))) {
      return watch.status();
    }
    uint8_t* out = &result[row_bytes * i];
    if (down) {
      for (int y = first; y < end; ++y) in[y - first] = rows.Row(y);
      const int size = row_bytes;
      kernels::CombineRows({&*down, i, in.data(), size, out});
    } else {
      memcpy(out, rows.Row(first), row_bytes);
    }
  }
  return result;
}

}  // namespace sfmamba::image
