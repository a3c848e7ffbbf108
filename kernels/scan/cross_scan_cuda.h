#ifndef SFMAMBA_KERNELS_SCAN_CROSS_SCAN_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_CROSS_SCAN_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"

namespace sfmamba::kernels {

// Scans feature maps in four directions, with one state per channel. Direction
// 0 visits the pixels of a map row by row, and direction 1 column by column.
// Directions 2 and 3 are the reverse of 0 and 1. For each direction k and
// channel d, the state h is 0 at the start of a map. The scan visits each pixel
// p in the direction's order and computes
//   delta    = log(1 + exp(dt[k,p,d] + bias[k,d]))
//   h        = exp(delta * A[k,d]) * h + delta * B[p,k] * u[p,d]
//   y[k,p,d] = C[p,k] * h + D[k,d] * u[p,d]
// The arithmetic is fp32. A NaN or an infinity in one image never reaches
// another.
// Source: VMamba (arXiv 2401.10166), 4.2, "2D-Selective-Scan".
template <typename T>
struct CrossScanArgs {
  int images, height, width, channels;
  const T* u;   // [pixels, channels], image by image in row-major order
  const T* dt;  // [4, pixels, channels], before bias and softplus
  // [pixels, 4]. Pixels are bc_stride elements apart, and directions are
  // bc_direction_stride elements apart.
  const T* B;
  const T* C;
  int64_t bc_stride, bc_direction_stride;
  const float* A;     // [4, channels], negative
  const float* D;     // [4, channels]
  const float* bias;  // [4, channels], added to dt
  float* y;           // [4, pixels, channels], written
};

// Enqueues the scan on `stream` and does not wait for it. All pointers are
// device pointers. They need only be aligned to their types. T is float,
// BFloat16 or Float16.
//
// A walk is the scan of one map in one direction. A kChunk plan cuts each walk
// into plan.chunks pieces that are scanned concurrently. Any other plan scans
// each walk in one piece. A map's output bits do not depend on the other maps
// in the call.
//
// `scratch` must point at ScanScratchBytes(plan, 4 * images, channels, 1) bytes
// of device memory, aligned to float. It may be null if the number of bytes is
// 0. No other call may use the memory until this scan has finished.
//
// Returns INVALID_ARGUMENT, which names the field, if the plan or the arguments
// are not supported. Returns INTERNAL if CUDA refuses a launch.
template <typename T>
absl::Status CrossScanCuda(const CrossScanArgs<T>& args, const ScanPlan& plan,
                           void* scratch, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_CROSS_SCAN_CUDA_H_
