#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"
#include "kernels/scan/selective_scan.h"

namespace sfmamba::kernels {

// Enqueues the scan of selective_scan.h on `stream` and returns. All pointers,
// sequences.offsets included, are device pointers. With offsets, only the
// device knows the sequences' lengths. T is float, BFloat16 or Float16.
// `states` is 8 or 16. The pointers need only be aligned to T.
//
// A sequence's outputs are bit-identical whatever else is in the call and
// whatever plan.rows is. ScanPlan::kFold is the exception: a sequence's
// position in its row may change its outputs by a few fp32 roundings. A NaN or
// an infinity stays in its sequence under every plan.
//
// `scratch` is ScanScratchBytes() of device memory, aligned to floats, or null
// where that is 0. No other call may use it until this scan has run.
//
// INVALID_ARGUMENT that names the field if the plan or the arguments are not
// supported, INTERNAL if a launch is refused.
template <typename T>
absl::Status SelectiveScanCuda(const SelectiveScanArgs<T>& args,
                               const ScanPlan& plan, void* scratch,
                               CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CUDA_H_
