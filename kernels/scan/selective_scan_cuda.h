#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"
#include "kernels/scan/selective_scan.h"

namespace sfmamba::kernels {

// Enqueues the scan of selective_scan.h on `stream` and returns. All pointers
// are device pointers, sequences.offsets too: the sequences then follow each
// other without gaps, and only the device knows their lengths. T is float,
// BFloat16 or Float16; states are 8 or 16; any alignment of a T will do.
//
// Outputs of a sequence do not depend, in any bit, on what else is in the call
// or on plan.rows, except by ScanPlan::kFold, where another place in its row
// may change them by a few roundings of fp32. A NaN or an infinity stays in its
// sequence by every plan.
//
// `scratch` is ScanScratchBytes() of device memory, aligned for floats, that no
// other call uses until this one has run; null where that is 0.
// INVALID_ARGUMENT naming the field for a plan or arguments that no kernel
// takes, INTERNAL if a launch is refused.
template <typename T>
absl::Status SelectiveScanCuda(const SelectiveScanArgs<T>& args,
                               const ScanPlan& plan, void* scratch,
                               CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CUDA_H_
