#ifndef SFMAMBA_KERNELS_SCAN_CROSS_SCAN_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_CROSS_SCAN_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"

namespace sfmamba::kernels {

// Four scans over maps, with one state per channel. Direction 0 walks over a
// map row by row, 1 column by column, 2 and 3 the same from the last pixel to
// the first. For each direction k and channel d, with a state h that is 0 at
// the start of a walk, each pixel p in the direction's order gives
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
  // [pixels, 4]: pixels are bc_stride apart, directions bc_direction_stride.
  const T* B;
  const T* C;
  int64_t bc_stride, bc_direction_stride;
  const float* A;     // [4, channels], negative
  const float* D;     // [4, channels]
  const float* bias;  // [4, channels], the whole bias of dt
  float* y;           // [4, pixels, channels], written
};

// Enqueues the scan on `stream` and returns. All pointers are device pointers
// that need only be aligned to their types. T is float, BFloat16 or Float16.
//
// A kChunk plan cuts each walk into plan.chunks pieces that are scanned
// concurrently. Any other plan scans each walk in one piece. A map's outputs
// are bit-identical whatever else is in the call.
//
// `scratch` is ScanScratchBytes(plan, 4 * images, channels, 1) of device
// memory, aligned to floats, or null where that is 0. No other call may use it
// until this scan has run.
//
// INVALID_ARGUMENT that names the field if the plan or the arguments are not
// supported, INTERNAL if a launch is refused.
template <typename T>
absl::Status CrossScanCuda(const CrossScanArgs<T>& args, const ScanPlan& plan,
                           void* scratch, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_CROSS_SCAN_CUDA_H_
