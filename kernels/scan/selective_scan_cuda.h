#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"
#include "kernels/scan/selective_scan.h"

namespace sfmamba::kernels {

// Enqueues the scan of selective_scan.h on `stream` and does not wait for it.
// All pointers, including sequences.offsets, are device pointers. If offsets is
// set, only the device knows the sequences' lengths. T is float, BFloat16 or
// Float16. `states` must be 8 or 16. The pointers need only be aligned to T.
//
// A sequence's output bits depend neither on the other sequences nor on
// plan.rows. The only exception is ScanPlan::kFold: a sequence's position in
// its row may change the outputs by a few fp32 roundings. A NaN or an infinity
// never reaches another sequence, whatever the plan is.
//
// `scratch` must point at ScanScratchBytes() bytes of device memory, aligned to
// float. It may be null if the number of bytes is 0. No other call may use the
// memory until this scan has finished.
//
// Returns INVALID_ARGUMENT, which names the field, if the plan or the arguments
// are not supported. Returns INTERNAL if CUDA refuses a launch.
template <typename T>
absl::Status SelectiveScanCuda(const SelectiveScanArgs<T>& args,
                               const ScanPlan& plan, void* scratch,
                               CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_CUDA_H_
