#include "server/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sfmamba::image {
namespace {

constexpr int kBits = 22;  // Of the weights' fraction.
constexpr int32_t kHalf = 1 << (kBits - 1);

// For each wanted output index: which inputs it is made of, and their weights.
struct Weights {
  std::vector<int> first;     // Input index.
  std::vector<int> count;     // Inputs.
  std::vector<int32_t> taps;  // [outputs, stride], `count` of each row used.
  int stride = 0;

  int end() const { return first.back() + count.back(); }  // Of the inputs.
};

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
Weights MakeWeights(int in, int out, int begin, int size) {
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(scale, 1.0);
  const double support = 2 * filter_scale;
  const double inverse = 1.0 / filter_scale;
  Weights weights;
  weights.stride = static_cast<int>(std::ceil(support)) * 2 + 1;
  weights.taps.resize(size_t{1} * size * weights.stride);
  std::vector<double> exact(weights.stride);
  for (int i = 0; i < size; ++i) {
    const double center = (begin + i + 0.5) * scale;
    const int low = std::max(0, static_cast<int>(center - support + 0.5));
    const int high = std::min(in, static_cast<int>(center + support + 0.5));
    double sum = 0;
    for (int k = low; k < high; ++k) {
      exact[k - low] = Cubic((k - center + 0.5) * inverse);
      sum += exact[k - low];
    }
    int32_t* taps = &weights.taps[size_t{1} * i * weights.stride];
    for (int k = 0; k < high - low; ++k) {
      const double weight =
          (sum != 0 ? exact[k] / sum : exact[k]) * (1 << kBits);
      taps[k] = static_cast<int32_t>(weight + (weight < 0 ? -0.5 : 0.5));
    }
    weights.first.push_back(low);
    weights.count.push_back(high - low);
  }
  return weights;
}

uint8_t ToByte(int32_t sum) { return std::clamp(sum >> kBits, 0, 255); }

// The functions below are built for AVX2 too; the processor decides at
// start-up.

// `in`: one row [pixels, 3] and one byte more; `out`: [outputs, 3].
__attribute__((target_clones("avx2", "default"))) void ResizeRow(
    const uint8_t* in, const Weights& weights, uint8_t* out) {
  const int outputs = weights.first.size();
  for (int i = 0; i < outputs; ++i) {
    const uint8_t* pixel = in + 3 * weights.first[i];
    const int32_t* taps = &weights.taps[size_t{1} * i * weights.stride];
    int32_t sum[4] = {kHalf, kHalf, kHalf, kHalf};  // The fourth is not used.
    for (int k = 0; k < weights.count[i]; ++k, pixel += 3) {
      for (int c = 0; c < 4; ++c) sum[c] += taps[k] * pixel[c];
    }
    for (int c = 0; c < 3; ++c) out[3 * i + c] = ToByte(sum[c]);
  }
}

// `in`: `count` rows of `size` bytes, `stride` apart; `out`: one such row, each
// byte the weighted sum of a column.
__attribute__((target_clones("avx2", "default"))) void CombineRows(
    const uint8_t* in, size_t stride, int count, const int32_t* taps, int size,
    int32_t* sums, uint8_t* out) {
  std::fill_n(sums, size, kHalf);
  for (int k = 0; k < count; ++k) {
    const uint8_t* row = in + stride * k;
    const int32_t tap = taps[k];
    for (int x = 0; x < size; ++x) sums[x] += tap * row[x];
  }
  for (int x = 0; x < size; ++x) out[x] = ToByte(sums[x]);
}

}  // namespace

std::vector<uint8_t> ResizeBicubic(const uint8_t* rgb, int width, int height,
                                   const ResizeWindow& window) {
  const bool resize_rows = width != window.width;
  const bool resize_columns = height != window.height;
  const Weights across =
      MakeWeights(width, window.width, window.left, window.columns);
  const Weights down =
      MakeWeights(height, window.height, window.top, window.rows);
  // The input rows that the window needs.
  const int begin = resize_columns ? down.first.front() : window.top;
  const int end = resize_columns ? down.end() : window.top + window.rows;

  const size_t stride = size_t{3} * window.columns;
  std::vector<uint8_t> narrow(stride * (end - begin));
  std::vector<uint8_t> padded(size_t{3} * width + 1);
  for (int y = begin; y < end; ++y) {
    const uint8_t* row = rgb + size_t{3} * width * y;
    uint8_t* out = &narrow[stride * (y - begin)];
    if (resize_rows) {
      memcpy(padded.data(), row, size_t{3} * width);
      ResizeRow(padded.data(), across, out);
    } else {
      memcpy(out, row + size_t{3} * window.left, stride);
    }
  }
  if (!resize_columns) return narrow;

  std::vector<uint8_t> result(stride * window.rows);
  std::vector<int32_t> sums(stride);
  for (int i = 0; i < window.rows; ++i) {
    CombineRows(&narrow[stride * (down.first[i] - begin)], stride,
                down.count[i], &down.taps[size_t{1} * i * down.stride], stride,
                sums.data(), &result[stride * i]);
  }
  return result;
}

}  // namespace sfmamba::image
