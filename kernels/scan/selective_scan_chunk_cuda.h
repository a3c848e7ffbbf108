#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CHUNK_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CHUNK_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"
#include "kernels/scan/selective_scan.h"

namespace sfmamba::kernels {

// Implements ScanPlan::kChunk for SelectiveScanCuda(), which has checked the
// arguments.
template <typename T>
absl::Status SelectiveScanChunkCuda(const SelectiveScanArgs<T>& args,
                                    const ScanPlan& plan, float* scratch,
                                    CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CHUNK_CUDA_H_
