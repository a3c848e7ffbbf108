// The gated convolution as templates over a vector type V. Each lane of a
// vector holds one channel. Files that are compiled for one instruction set
// include this header and choose V.
#ifndef SFMAMBA_KERNELS_LINEAR_GATED_CONVOLUTION_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_GATED_CONVOLUTION_SIMD_H_

#include <algorithm>

#include "kernels/linear/gated_convolution.h"
#include "kernels/linear/gelu_simd.h"
#include "kernels/linear/silu_simd.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

constexpr int kReach = kGatedTaps / 2;

// The maximum number of columns of a row that are computed together. Each
// loaded pixel is multiplied by all weights that apply to it. The sums, one row
// of weights and the pixel take 15 of AVX2's 16 registers.
constexpr int kMostColumns = 7;

template <typename V>
struct WholeVector {
  template <typename T>
  V Load(const T* p) const {
    return V::Load(p);
  }
  template <typename T>
  void Store(V v, T* p) const {
    v.Store(p);
  }
};

template <typename V>
struct PartOfVector {
  template <typename T>
  V Load(const T* p) const {
    return LoadLanes<V>(p, lanes);
  }
  template <typename T>
  void Store(V v, T* p) const {
    StoreLanes(v, p, lanes);
  }
  int lanes;
};

// One row of a map.
template <typename T>
struct GatedRow {
  GatedRow(const GatedConvolutionArgs<T>& args, int64_t row)
      : args(args),
        row(row % args.height),
        map(args.x + (row - row % args.height) * args.width * stride()),
        x(args.x + row * args.width * stride()),
        y(args.y + row * args.width * args.hidden) {}

  int64_t stride() const { return 2 * int64_t{args.hidden}; }

  const GatedConvolutionArgs<T>& args;
  const int64_t row;
  const T* const map;
  const T* const x;  // The row's pixels.
  T* const y;
};

// Computes one vector of convolved channels in kCount columns. `c` is the first
// channel, in [0, conv), and `column` is the first column.
template <typename V, int kCount, typename Lanes, typename T, typename Gate>
void ConvolveColumns(const GatedRow<T>& row, int64_t column, int64_t c,
                     const Lanes& lanes, Gate gate) {
  const GatedConvolutionArgs<T>& args = row.args;
  const int64_t stride = row.stride();
  V sums[kCount];
#pragma GCC unroll 7
  for (int i = 0; i < kCount; ++i) sums[i] = lanes.Load(args.bias + c);
  const int64_t first = std::max<int64_t>(0, row.row - kReach);
  const int64_t last = std::min<int64_t>(args.height, row.row + kReach + 1);
  for (int64_t r = first; r < last; ++r) {
    const float* weight =
        args.weight + (r - row.row + kReach) * kGatedTaps * args.conv + c;
    V taps[kGatedTaps];
#pragma GCC unroll 7
    for (int t = 0; t < kGatedTaps; ++t) {
      taps[t] = lanes.Load(weight + int64_t{t} * args.conv);
    }
    const T* pixels =
        row.map + (r * args.width + column) * stride + stride - args.conv + c;
#pragma GCC unroll 13
    for (int j = -kReach; j < kCount + kReach; ++j) {
      // Skips columns outside the map. A negative column is a very large
      // unsigned number.
      if (static_cast<uint64_t>(column + j) >=
          static_cast<uint64_t>(args.width)) {
        continue;
      }
      const V x = lanes.Load(pixels + j * stride);
#pragma GCC unroll 7
      for (int i = 0; i < kCount; ++i) {
        const int t = j - i + kReach;
        if (t >= 0 && t < kGatedTaps) sums[i] = Fma(taps[t], x, sums[i]);
      }
    }
  }
  const int64_t channel = args.hidden - args.conv + c;
#pragma GCC unroll 7
  for (int i = 0; i < kCount; ++i) {
    const V g = lanes.Load(row.x + (column + i) * stride + channel);
    lanes.Store(gate(g) * sums[i],
                row.y + (column + i) * args.hidden + channel);
  }
}

// Calls ConvolveColumns() for `count` columns. `count` is 1 to kCount.
template <typename V, int kCount, typename Lanes, typename T, typename Gate>
void ConvolveUpTo(int64_t count, const GatedRow<T>& row, int64_t column,
                  int64_t c, const Lanes& lanes, Gate gate) {
  if constexpr (kCount > 1) {
    if (count < kCount) {
      return ConvolveUpTo<V, kCount - 1>(count, row, column, c, lanes, gate);
    }
  }
  ConvolveColumns<V, kCount>(row, column, c, lanes, gate);
}

template <typename V, typename T, typename Gate>
void ComputeRow(const GatedRow<T>& row, Gate gate) {
  const GatedConvolutionArgs<T>& args = row.args;
  for (int64_t column = 0; column < args.width; ++column) {
    const T* x = row.x + column * row.stride();
    T* y = row.y + column * args.hidden;
    ForEachVector<V>(args.hidden - args.conv, [&](int64_t c, int lanes) {
      StoreLanes(gate(LoadLanes<V>(x + c, lanes)) *
                     LoadLanes<V>(x + args.hidden + c, lanes),
                 y + c, lanes);
    });
  }
  for (int64_t column = 0; column < args.width; column += kMostColumns) {
    const int64_t count = std::min<int64_t>(kMostColumns, args.width - column);
    int64_t c = 0;
    for (; c + V::kWidth <= args.conv; c += V::kWidth) {
      ConvolveUpTo<V, kMostColumns>(count, row, column, c, WholeVector<V>(),
                                    gate);
    }
    if (c == args.conv) continue;
    const PartOfVector<V> rest = {static_cast<int>(args.conv - c)};
    for (int64_t i = column; i < column + count; ++i) {
      ConvolveColumns<V, 1>(row, i, c, rest, gate);
    }
  }
}

template <typename V, typename T>
void GatedConvolution(const GatedConvolutionArgs<T>& args, int64_t begin,
                      int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    if (args.activation == GateActivation::kSilu) {
      ComputeRow<V>(GatedRow<T>(args, row), Silu());
    } else {
      ComputeRow<V>(GatedRow<T>(args, row), GeluErf());
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_GATED_CONVOLUTION_SIMD_H_
