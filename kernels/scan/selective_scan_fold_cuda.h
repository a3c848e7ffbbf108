#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_FOLD_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_FOLD_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"
#include "kernels/scan/selective_scan.h"

namespace sfmamba::kernels {

// Implements ScanPlan::kFold for SelectiveScanCuda(), which has checked the
// arguments. Concatenates sequences into rows. Each row is one parallel scan,
// in which the state is reset at the start of each sequence.
// Source: SF-Mamba (arXiv 2603.16423), 3.3.
template <typename T>
absl::Status SelectiveScanFoldCuda(const SelectiveScanArgs<T>& args,
                                   const ScanPlan& plan, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_FOLD_CUDA_H_
