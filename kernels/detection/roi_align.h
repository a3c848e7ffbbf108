#ifndef SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_H_
#define SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_H_

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// RoIAlign ("aligned", with average pooling) over a feature pyramid. Divides
// each region of the image into out_height x out_width bins. On the x axis, the
// bins begin at `start` and each is `bin` pixels of the map wide:
//   start = x1 * scale - 0.5, bin = (x2 - x1) * scale / out_width
// The y axis is divided in the same way. Each output is the mean of a grid of
// bilinear samples in its bin. The grid has `sampling_ratio` samples per side,
// or ceil(bin) samples if it is adaptive. Samples more than 1 pixel outside of
// the map count as 0. All outputs of a region are 0 if its corners or size are
// not finite, or if the grid is adaptive and the region is empty.
//
// A region of w x h pixels reads the level floor(log2(sqrt(w * h) /
// finest_scale + 1e-6)), limited to the existing levels.
// Source: Mask R-CNN (arXiv 1703.06870), 3; FPN (arXiv 1612.03144), 4.2.
struct RoiAlignArgs {
  static constexpr int kMaxLevels = 4;

  struct Level {
    const float* features;  // [height, width, channels] of one image.
    int height, width;      // At least 1.
    float scale;            // Size of the map / size of the image.
  };

  int num_levels;  // 1..kMaxLevels, from fine to coarse.
  Level levels[kMaxLevels];
  int channels;
  float finest_scale;  // In pixels of the image, by default 56.
  int num_rois;
  const float* rois;  // [num_rois, 4] x1, y1, x2, y2; any values
  int out_height, out_width;
  int sampling_ratio;  // 0 makes the grid adaptive.
  float* out;          // [num_rois, out_height, out_width, channels], written
};

// Returns the index of the level that the region `roi` reads.
int RoiLevel(const float* roi, int num_levels, float finest_scale);

// Runs on the calling thread. The sizes of the maps limit the time and the
// memory, however large a region is.
void RoiAlignCpu(const RoiAlignArgs& args, CpuIsa isa = ActiveCpuIsa());

// The reference implementation, which RoiAlignCpu() calls for CpuIsa::kScalar.
// Adds up the samples one by one.
void RoiAlignScalar(const RoiAlignArgs& args);

// The pixels first .. first + count - 1 that a bin sums on one axis, and their
// weights.
struct RoiBin {
  int first, count;
  const float* weights;  // [count]
};

// These compute one region. RoiAlignCpu() calls one of them for AVX2 or
// AVX-512. `rows` [out_height] and `columns` [out_width] hold the weights of
// the pixels in each bin. `out` is [out_height, out_width, channels].
void AlignRegionAvx2(const RoiAlignArgs& args, const RoiAlignArgs::Level& level,
                     const RoiBin* rows, const RoiBin* columns, float* out);
void AlignRegionAvx512(const RoiAlignArgs& args,
                       const RoiAlignArgs::Level& level, const RoiBin* rows,
                       const RoiBin* columns, float* out);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_H_
