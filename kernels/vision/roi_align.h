#ifndef SFMAMBA_KERNELS_VISION_ROI_ALIGN_H_
#define SFMAMBA_KERNELS_VISION_ROI_ALIGN_H_

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// RoIAlign, aligned and averaging, from a pyramid of maps. With
//   start = x1 * scale - 0.5, bin = (x2 - x1) * scale / out_width
// (y likewise), a bin is the mean of a grid of bilinear samples, ceil(bin) a
// side or `sampling_ratio`. Samples further than 1 outside of the map count 0;
// with the adaptive grid a region of no size gives zeros, and with either a
// region whose corners or size are not finite.
//
// A region is read from level floor(log2(sqrt(w * h) / finest_scale + 1e-6)),
// clamped to the levels there are.
// Source: Mask R-CNN (arXiv 1703.06870), 3; FPN (arXiv 1612.03144), 4.2.
struct RoiAlignArgs {
  static constexpr int kMaxLevels = 4;

  struct Level {
    const float* features;  // [height, width, channels] of one image.
    int height, width;      // At least 1.
    float scale;            // Of its pixels to the regions': 1 / stride.
  };

  int num_levels;  // 1..kMaxLevels, from fine to coarse.
  Level levels[kMaxLevels];
  int channels;
  float finest_scale;  // Pixels; 56 in all detectors.
  int num_rois;
  const float* rois;  // [num_rois, 4] x1, y1, x2, y2; any values
  int out_height, out_width;
  int sampling_ratio;  // 0: adaptive.
  float* out;          // [num_rois, out_height, out_width, channels], written
};

// The level that a region is read from.
int RoiLevel(const float* roi, int num_levels, float finest_scale);

// Runs on the calling thread; time and memory are bounded by the maps' sizes,
// however large a region is.
void RoiAlignCpu(const RoiAlignArgs& args, CpuIsa isa = ActiveCpuIsa());

// RoiAlignCpu's choice kScalar, and the reference: sample by sample.
void RoiAlignScalar(const RoiAlignArgs& args);

// What one bin takes from one axis: pixels first .. first + count - 1.
struct RoiBin {
  int first, count;
  const float* weights;  // [count]
};

// RoiAlignCpu's other choices, for one region, whose samples' weights are
// summed up already: rows [out_height], columns [out_width], out [out_height,
// out_width, channels].
void AlignRegionAvx2(const RoiAlignArgs& args, const RoiAlignArgs::Level& level,
                     const RoiBin* rows, const RoiBin* columns, float* out);
void AlignRegionAvx512(const RoiAlignArgs& args,
                       const RoiAlignArgs::Level& level, const RoiBin* rows,
                       const RoiBin* columns, float* out);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_VISION_ROI_ALIGN_H_
