#ifndef SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_CUDA_H_
#define SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/detection/roi_align.h"

namespace sfmamba::kernels {

// RoiAlignArgs with features and results of type T: float, BFloat16 or Float16.
// All pointers are device pointers.
template <typename T>
struct RoiAlignCudaArgs {
  struct Level {
    const T* features;  // [height, width, channels] of one image.
    int height, width;  // At least 1.
    float scale;        // 1 / stride: the map's size over the image's.
  };

  int num_levels;  // 1..RoiAlignArgs::kMaxLevels, from fine to coarse.
  Level levels[RoiAlignArgs::kMaxLevels];
  int channels;
  float finest_scale;  // In pixels; 56 in all detectors.
  int num_rois;
  const float* rois;  // [num_rois, 4] x1, y1, x2, y2; any values
  int out_height, out_width;
  int sampling_ratio;  // 0 makes the grid adaptive.
  T* out;              // [num_rois, out_height, out_width, channels], written
};

// Computes what RoiAlignScalar() does, with the same levels and grids. Sums are
// fp32 too but rounded differently. A region's output bits depend only on the
// region and the maps. Time is bounded by the maps' sizes, however large a
// region is. Fastest where channels are a multiple of 16 bytes and pointers are
// aligned to 16 bytes.
//
// Enqueues on `stream` and returns. INTERNAL if the launch is refused.
template <typename T>
absl::Status RoiAlignCuda(const RoiAlignCudaArgs<T>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_ROI_ALIGN_CUDA_H_
