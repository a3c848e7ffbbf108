#ifndef SFMAMBA_KERNELS_ROI_ALIGN_H_
#define SFMAMBA_KERNELS_ROI_ALIGN_H_

#include <cstdint>

#include "kernels/cpu_features.h"

namespace sfmamba {

// RoIAlign, aligned and averaging, from a pyramid of maps. With
//   start = x1 * scale - 0.5, bin = (x2 - x1) * scale / out_width
// (y likewise), a bin is the mean of a grid of bilinear samples, ceil(bin) a
// side or `sampling_ratio`. Samples further than 1 outside of the map count 0;
// a region of no size gives zeros.
//
// A region is read from level floor(log2(sqrt(w * h) / finest_scale + 1e-6)),
// clamped to the levels there are.
// Source: Mask R-CNN (arXiv 1703.06870), 3; FPN (arXiv 1612.03144), 4.2.
struct RoiAlignArgs {
  static constexpr int kMaxLevels = 4;

  struct Level {
    const float* features;  // [height, width, channels] of one image.
    int height, width;
    float scale;  // Of its pixels to the regions': 1 / stride.
  };

  int num_levels;  // 1..kMaxLevels, from fine to coarse.
  Level levels[kMaxLevels];
  int channels;
  float finest_scale;  // Pixels; 56 in all detectors.
  int num_rois;
  const float* rois;  // [num_rois, 4] x1, y1, x2, y2
  int out_height, out_width;
  int sampling_ratio;  // 0: adaptive.
  float* out;          // [num_rois, out_height, out_width, channels], written
};

// The level that a region is read from.
int RoiLevel(const float* roi, int num_levels, float finest_scale);

// Runs on the calling thread.
void RoiAlignCpu(const RoiAlignArgs& args, CpuIsa isa = ActiveCpuIsa());

// RoiAlignCpu chooses among these, one per instruction set.
void RoiAlignScalar(const RoiAlignArgs& args);
void RoiAlignAvx2(const RoiAlignArgs& args);
void RoiAlignAvx512(const RoiAlignArgs& args);

}  // namespace sfmamba

#endif  // SFMAMBA_KERNELS_ROI_ALIGN_H_
