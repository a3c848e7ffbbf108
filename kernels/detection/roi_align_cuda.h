#ifndef SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_CUDA_H_
#define SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/detection/roi_align.h"

namespace sfmamba::kernels {

// Like RoiAlignArgs, but the features and the output have type T, which is
// float, BFloat16 or Float16. All pointers are device pointers.
template <typename T>
struct RoiAlignCudaArgs {
  struct Level {
    const T* features;  // [height, width, channels] of one image.
    int height, width;  // At least 1.
    float scale;        // Size of the map / size of the image.
  };

  int num_levels;  // 1..RoiAlignArgs::kMaxLevels, from fine to coarse.
  Level levels[RoiAlignArgs::kMaxLevels];
  int channels;
  float finest_scale;  // In pixels of the image, by default 56.
  int num_rois;
  const float* rois;  // [num_rois, 4] x1, y1, x2, y2; any values
  int out_height, out_width;
  int sampling_ratio;  // 0 makes the grid adaptive.
  T* out;              // [num_rois, out_height, out_width, channels], written
};

// Computes the same outputs as RoiAlignScalar(), with the same levels and
// grids. Sums are fp32 as well, but are rounded differently. A region's output
// bits depend only on the region and the maps. The sizes of the maps limit the
// time, however large a region is. The kernel is fastest if a pixel's channels
// take a multiple of 16 bytes and the pointers are aligned to 16 bytes.
//
// Enqueues the work on `stream` and does not wait for it. Returns INTERNAL if
// CUDA refuses the launch.
template <typename T>
absl::Status RoiAlignCuda(const RoiAlignCudaArgs<T>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_CUDA_H_
