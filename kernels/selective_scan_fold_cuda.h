#ifndef SFMAMBA_KERNELS_SELECTIVE_SCAN_FOLD_CUDA_H_
#define SFMAMBA_KERNELS_SELECTIVE_SCAN_FOLD_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda_stream.h"
#include "kernels/scan_plan.h"
#include "kernels/selective_scan.h"

namespace sfmamba {

// SelectiveScanCuda by ScanPlan::kFold; it has checked the arguments. Source:
// SF-Mamba (arXiv 2603.16423), 3.3: sequences folded into rows, each row a
// parallel scan whose state is reset where a sequence starts.
template <typename T>
absl::Status SelectiveScanFoldCuda(const SelectiveScanArgs<T>& args,
                                   const ScanPlan& plan, CudaStream stream);

}  // namespace sfmamba

#endif  // SFMAMBA_KERNELS_SELECTIVE_SCAN_FOLD_CUDA_H_
