// Computes the bins of one region by vectors of type V, one channel per lane.
// roi_align_isa.cc includes this header and is compiled once for each
// instruction set, with a different V.
#ifndef SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_SIMD_H_
#define SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_SIMD_H_

#include <cstdint>

#include "kernels/detection/roi_align.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// Computes kVectors vectors of consecutive channels of one bin. The last vector
// has only `lanes` channels. `pixel` points at the first channel of the first
// vector, in the bin's top left pixel.
template <typename V, int kVectors>
inline void AlignBin(const float* pixel, int64_t row_stride, int channels,
                     const RoiBin& rows, const RoiBin& columns, int lanes,
                     float* out) {
  V sums[kVectors];
  for (int v = 0; v < kVectors; ++v) sums[v] = V::Set(0.0f);
  for (int row = 0; row < rows.count; ++row) {
    const float* p = pixel + row * row_stride;
    const V row_weight = V::Set(rows.weights[row]);
    for (int column = 0; column < columns.count; ++column) {
      const V weight = row_weight * V::Set(columns.weights[column]);
      for (int v = 0; v + 1 < kVectors; ++v) {
        sums[v] = Fma(weight, V::Load(p + v * V::kWidth), sums[v]);
      }
      constexpr int kLast = kVectors - 1;
      const V last = LoadLanes<V>(p + kLast * V::kWidth, lanes);
      sums[kLast] = Fma(weight, last, sums[kLast]);
      p += channels;
    }
  }
  for (int v = 0; v + 1 < kVectors; ++v) sums[v].Store(out + v * V::kWidth);
  StoreLanes(sums[kVectors - 1], out + (kVectors - 1) * V::kWidth, lanes);
}

template <typename V>
void AlignRegion(const RoiAlignArgs& args, const RoiAlignArgs::Level& level,
                 const RoiBin* rows, const RoiBin* columns, float* out) {
  constexpr int kBlock = 8;  // Vectors per call of AlignBin().
  const int channels = args.channels;
  const int64_t row_stride = int64_t{level.width} * channels;
  for (int i = 0; i < args.out_height; ++i) {
    for (int j = 0; j < args.out_width; ++j) {
      const float* pixel = level.features + rows[i].first * row_stride +
                           int64_t{columns[j].first} * channels;
      int c = 0;
      for (; c + kBlock * V::kWidth <= channels; c += kBlock * V::kWidth) {
        AlignBin<V, kBlock>(pixel + c, row_stride, channels, rows[i],
                            columns[j], V::kWidth, out + c);
      }
      for (; c < channels; c += V::kWidth) {
        const int lanes = channels - c < V::kWidth ? channels - c : V::kWidth;
        AlignBin<V, 1>(pixel + c, row_stride, channels, rows[i], columns[j],
                       lanes, out + c);
      }
      out += channels;
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_SIMD_H_
