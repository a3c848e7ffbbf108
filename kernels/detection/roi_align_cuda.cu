#include <cstdint>

#include "kernels/detection/roi_align_cuda.h"
#include "simt/simt.h"

// The compiler must not fuse multiplications with additions in this file (no
// contraction). Positions, which decide the size of the grids, are therefore
// rounded as on the CPU. Sums of features call fmaf() explicitly.
namespace sfmamba::kernels {
namespace {

// A warp computes a bin, and its lanes divide the channels. Every lane computes
// the positions of all samples. This takes few instructions compared with the 4
// loads of 16 bytes for each sample.
constexpr int kLanes = 32;
constexpr int kBins = 4;  // Bins in a block, all of one region.

// The maximum number of samples of a bin on one axis, as in roi_align_cpu.cc.
// Sample indices up to 2^23 are exact in fp32.
constexpr float kMaxGrid = 1 << 23;
constexpr float kLargest = 3.402823466e38f;

__device__ bool IsFinite(float x) { return x >= -kLargest && x <= kLargest; }

// Returns the same level as RoiLevel() without computing a logarithm. In
// RoiLevel(), the level is log2f(ratio) without its fraction. For the largest
// float below 8, log2f() returns exactly 3, so this float already belongs to
// level 3. For the largest float below 2, log2f() returns less than 1. For the
// largest float below 4, log2f() returns less than 2. So the other two
// boundaries are exactly 2 and 4.
__device__ int LevelOf(const float* roi, int num_levels, float finest_scale) {
  static_assert(RoiAlignArgs::kMaxLevels == 4, "expected 3 boundaries");
  const float side = sqrtf((roi[2] - roi[0]) * (roi[3] - roi[1]));
  const float ratio = side / finest_scale + 1e-6f;
  const int level =
      (ratio >= 2.0f) + (ratio >= 4.0f) + (ratio >= 0x1.fffffep+2f);
  return min(level, num_levels - 1);
}

// A bilinear sample on one axis. Pixel `low` has weight 1 - fraction, pixel
// `high` has weight `fraction`. `low` is -1 for a sample off the map.
struct Sample {
  int low, high;
  float fraction;
};

// A bin's samples on one axis. Only the samples [begin, end) of the `grid`
// samples can be on the map. If the region is far larger than the map, this
// range is much shorter than the grid.
struct BinSamples {
  float origin, bin;
  int grid, begin, end;

  __device__ Sample At(int k, int extent) const {
    const float position = origin + (static_cast<float>(k) + 0.5f) * bin /
                                        static_cast<float>(grid);
    const bool on_map =
        position >= -1.0f && position <= static_cast<float>(extent);
    const float inside = on_map ? fmaxf(position, 0.0f) : 0.0f;
    const int low = min(static_cast<int>(inside), extent - 1);
    const int high = min(low + 1, extent - 1);
    const float fraction =
        low < extent - 1 ? inside - static_cast<float>(low) : 0.0f;
    return {on_map ? low : -1, high, fraction};
  }
};

// Returns the samples of bin `index`. The region extends from `from` to `to` in
// the image and is divided into `bins` bins. The map has `extent` pixels on
// this axis.
__device__ BinSamples SamplesOf(float from, float to, float scale, int bins,
                                int index, int sampling_ratio, int extent) {
  // Computes the size from the scaled corners, as on the CPU.
  const float start = from * scale - 0.5f;
  const float size = (to * scale - 0.5f) - start;
  if (!IsFinite(start) || !IsFinite(size)) return {0.0f, 0.0f, 0, 0, 0};
  const float bin = size / static_cast<float>(bins);
  const float origin = start + static_cast<float>(index) * bin;
  if (sampling_ratio != 0) {
    return {origin, bin, sampling_ratio, 0, sampling_ratio};
  }
  const float grid = fminf(fmaxf(ceilf(bin), 0.0f), kMaxGrid);
  if (grid == 0) return {origin, bin, 0, 0, 0};
  // The range has at least one extra sample at each end, in case of rounding
  // errors.
  const float step = bin / grid;
  const float begin = floorf((-1.0f - origin) / step) - 2.0f;
  const float end = ceilf((static_cast<float>(extent) - origin) / step) + 2.0f;
  return {origin, bin, static_cast<int>(grid),
          static_cast<int>(fminf(fmaxf(begin, 0.0f), grid)),
          static_cast<int>(fminf(fmaxf(end, 0.0f), grid))};
}

// Multiplies kVector channels, which begin at `from`, by `weight` and adds them
// to `sum`.
template <typename T, int kVector>
__device__ void AddPixel(const T* from, float weight, float (&sum)[kVector]) {
  const simt::Vector<T, kVector> pixel = simt::Load<kVector>(from);
  for (int v = 0; v < kVector; ++v) {
    sum[v] = fmaf(weight, simt::ToFloat(pixel[v]), sum[v]);
  }
}

// blockIdx.x is the region. Each blockIdx.y computes kBins of the region's
// bins.
template <typename T, int kVector>
__global__ void RoiAlignKernel(RoiAlignCudaArgs<T> args) {
  const int64_t region = blockIdx.x;
  const int bin = blockIdx.y * kBins + threadIdx.y;
  if (bin >= args.out_height * args.out_width) return;
  const float* roi = args.rois + 4 * region;
  const typename RoiAlignCudaArgs<T>::Level level =
      args.levels[LevelOf(roi, args.num_levels, args.finest_scale)];
  const BinSamples y =
      SamplesOf(roi[1], roi[3], level.scale, args.out_height,
                bin / args.out_width, args.sampling_ratio, level.height);
  const BinSamples x =
      SamplesOf(roi[0], roi[2], level.scale, args.out_width,
                bin % args.out_width, args.sampling_ratio, level.width);
  const float count =
      fmaxf(static_cast<float>(y.grid) * static_cast<float>(x.grid), 1.0f);
  const int64_t row_stride = int64_t{level.width} * args.channels;
  T* out = args.out +
           (region * args.out_height * args.out_width + bin) * args.channels;
  for (int c = threadIdx.x * kVector; c < args.channels;
       c += kLanes * kVector) {
    float sum[kVector] = {};
    for (int j = y.begin; j < y.end; ++j) {
      const Sample row = y.At(j, level.height);
      if (row.low < 0) continue;
      const T* top = level.features + row.low * row_stride + c;
      const T* bottom = level.features + row.high * row_stride + c;
      for (int k = x.begin; k < x.end; ++k) {
        const Sample column = x.At(k, level.width);
        if (column.low < 0) continue;
        const int64_t left = int64_t{column.low} * args.channels;
        const int64_t right = int64_t{column.high} * args.channels;
        const float upper = 1 - row.fraction, near = 1 - column.fraction;
        AddPixel<T, kVector>(top + left, upper * near, sum);
        AddPixel<T, kVector>(top + right, upper * column.fraction, sum);
        AddPixel<T, kVector>(bottom + left, row.fraction * near, sum);
        AddPixel<T, kVector>(bottom + right, row.fraction * column.fraction,
                             sum);
      }
    }
    simt::Vector<T, kVector> mean;
    for (int v = 0; v < kVector; ++v) {
      mean[v] = simt::FromFloat<T>(sum[v] / count);
    }
    simt::Store<kVector>(out + c, mean);
  }
}

bool IsAligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

}  // namespace

template <typename T>
absl::Status RoiAlignCuda(const RoiAlignCudaArgs<T>& args, CudaStream stream) {
  constexpr int kVector = 16 / sizeof(T);
  bool wide = args.channels % kVector == 0 && IsAligned(args.out);
  for (int i = 0; i < args.num_levels; ++i) {
    wide = wide && IsAligned(args.levels[i].features);
  }
  const unsigned bins = args.out_height * args.out_width;
  const dim3 blocks(args.num_rois, (bins + kBins - 1) / kBins);
  return simt::Launch("RoiAlign",
                      wide ? RoiAlignKernel<T, kVector> : RoiAlignKernel<T, 1>,
                      blocks, dim3(kLanes, kBins), stream, args);
}

template absl::Status RoiAlignCuda<float>(const RoiAlignCudaArgs<float>&,
                                          CudaStream);
template absl::Status RoiAlignCuda<BFloat16>(const RoiAlignCudaArgs<BFloat16>&,
                                             CudaStream);
template absl::Status RoiAlignCuda<Float16>(const RoiAlignCudaArgs<Float16>&,
                                            CudaStream);

}  // namespace sfmamba::kernels
