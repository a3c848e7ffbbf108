#include <algorithm>

#include "kernels/pixels/fixed_point_resize.h"

namespace sfmamba::kernels {
namespace {

constexpr int32_t kHalf = 1 << (kWeightFractionBits - 1);

int RoundedUpTo4(int count) { return (count + 3) / 4 * 4; }

uint8_t ToByte(int32_t sum) {
  return std::clamp(sum >> kWeightFractionBits, 0, 255);
}

// Returns two int16 in an int32, with `first` in the lower half.
int32_t Pair(int32_t first, int32_t second) {
  return static_cast<int32_t>((static_cast<uint32_t>(second) << 16) |
                              (static_cast<uint32_t>(first) & 0xffff));
}

}  // namespace

FixedPointTaps::FixedPointTaps(int outputs, int max_count)
    : stride_(RoundedUpTo4(max_count)),
      first_(outputs),
      count_(outputs),
      weights_(size_t{1} * outputs * stride_),
      parts_(size_t{1} * outputs * stride_) {}

void FixedPointTaps::Set(int i, int first, const int32_t* weights, int count) {
  first_[i] = first;
  count_[i] = count;
  int32_t* row = &weights_[size_t{1} * i * stride_];
  std::copy_n(weights, count, row);
  std::fill(row + count, row + RoundedUpTo4(count), 0);
  int32_t* parts = &parts_[size_t{1} * i * stride_];
  constexpr int32_t kLow = (1 << kLowBits) - 1;
  for (int k = 0; k < RoundedUpTo4(count); k += 2) {
    parts[k] = Pair(row[k] >> kLowBits, row[k + 1] >> kLowBits);
    parts[k + 1] = Pair(row[k] & kLow, row[k + 1] & kLow);
  }
}

size_t ReadableRowBytes(const FixedPointTaps& taps) {
  int pixels = 0;
  for (int i = 0; i < taps.outputs(); ++i) {
    pixels = std::max(pixels, taps.first(i) + RoundedUpTo4(taps.count(i)));
  }
  return size_t{3} * pixels + 4;  // Four pixels are read as 16 bytes.
}

void ResizeRowsScalar(const ResizeRowsArgs& args) {
  const FixedPointTaps& taps = *args.taps;
  for (int row = 0; row < ResizeRowsArgs::kRowsAtOnce; ++row) {
    if (row > 0 && args.out[row] == args.out[row - 1]) continue;
    uint8_t* out = args.out[row];
    for (int i = 0; i < taps.outputs(); ++i) {
      const uint8_t* pixel = args.in[row] + size_t{3} * taps.first(i);
      const int32_t* weights = taps.weights(i);
      int32_t sum[3] = {kHalf, kHalf, kHalf};
      for (int k = 0; k < taps.count(i); ++k, pixel += 3) {
        for (int c = 0; c < 3; ++c) sum[c] += weights[k] * pixel[c];
      }
      for (int c = 0; c < 3; ++c) *out++ = ToByte(sum[c]);
    }
  }
}

void CombineRowsScalar(const CombineRowsArgs& args) {
  // 1024 sums are 4 KiB, which stay in the first-level cache.
  constexpr int kColumns = 1024;
  int32_t sums[kColumns];
  const int count = args.taps->count(args.output);
  const int32_t* weights = args.taps->weights(args.output);
  for (int begin = 0; begin < args.size; begin += kColumns) {
    const int columns = std::min(kColumns, args.size - begin);
    std::fill_n(sums, columns, kHalf);
    for (int k = 0; k < count; ++k) {
      const uint8_t* row = args.in[k] + begin;
      for (int x = 0; x < columns; ++x) sums[x] += weights[k] * row[x];
    }
    for (int x = 0; x < columns; ++x) args.out[begin + x] = ToByte(sums[x]);
  }
}

void ResizeRows(const ResizeRowsArgs& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return ResizeRowsScalar(args);
    case CpuIsa::kAvx2:
      return ResizeRowsAvx2(args);
    case CpuIsa::kAvx512:
      return ResizeRowsAvx512(args);
  }
}

void CombineRows(const CombineRowsArgs& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return CombineRowsScalar(args);
    case CpuIsa::kAvx2:
      return CombineRowsAvx2(args);
    case CpuIsa::kAvx512:
      return CombineRowsAvx512(args);
  }
}

}  // namespace sfmamba::kernels
