#ifndef SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_H_
#define SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_H_

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// RoIAlign ("aligned", with average pooling) over a feature pyramid. With
//   start = x1 * scale - 0.5, bin = (x2 - x1) * scale / out_width
// (y likewise), each output bin is the mean of a grid of bilinear samples. The
// grid has `sampling_ratio` samples per side, or ceil(bin) if it is adaptive.
// Samples more than 1 pixel outside of the map count as 0. The result is zeros
// if a region's corners or size are not finite, or if the grid is adaptive and
// the region is empty.
//
// A region reads level floor(log2(sqrt(w * h) / finest_scale + 1e-6)), clamped
// to the existing levels.
// Source: Mask R-CNN (arXiv 1703.06870), 3; FPN (arXiv 1612.03144), 4.2.
struct RoiAlignArgs {
  static constexpr int kMaxLevels = 4;

  struct Level {
    const float* features;  // [height, width, channels] of one image.
    int height, width;      // At least 1.
    float scale;            // 1 / stride: the map's size over the image's.
  };

  int num_levels;  // 1..kMaxLevels, from fine to coarse.
  Level levels[kMaxLevels];
  int channels;
  float finest_scale;  // In pixels; 56 in all detectors.
  int num_rois;
  const float* rois;  // [num_rois, 4] x1, y1, x2, y2; any values
  int out_height, out_width;
  int sampling_ratio;  // 0 makes the grid adaptive.
  float* out;          // [num_rois, out_height, out_width, channels], written
};

// Returns the level that a region reads.
int RoiLevel(const float* roi, int num_levels, float finest_scale);

// Runs on the calling thread. Time and memory are bounded by the maps' sizes,
// however large a region is.
void RoiAlignCpu(const RoiAlignArgs& args, CpuIsa isa = ActiveCpuIsa());

// The reference, which RoiAlignCpu calls for kScalar. Works sample by sample.
void RoiAlignScalar(const RoiAlignArgs& args);

// The weights with which a bin sums pixels first .. first + count - 1 of one
// axis.
struct RoiBin {
  int first, count;
  const float* weights;  // [count]
};

// RoiAlignCpu calls these for each region with the other instruction sets.
// `rows` [out_height] and `columns` [out_width] hold the summed weights of the
// region's samples; `out` is [out_height, out_width, channels].
void AlignRegionAvx2(const RoiAlignArgs& args, const RoiAlignArgs::Level& level,
                     const RoiBin* rows, const RoiBin* columns, float* out);
void AlignRegionAvx512(const RoiAlignArgs& args,
                       const RoiAlignArgs::Level& level, const RoiBin* rows,
                       const RoiBin* columns, float* out);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_H_
