#ifndef SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_LANE_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_LANE_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"
#include "kernels/scan/selective_scan.h"

namespace sfmamba::kernels {

// SelectiveScanCuda by ScanPlan::kLane; it has checked the arguments. Two
// channels a thread need rows of u, dt and y that are aligned for pairs: else
// one is taken, for the same bits.
template <typename T>
absl::Status SelectiveScanLaneCuda(const SelectiveScanArgs<T>& args,
                                   const ScanPlan& plan, CudaStream stream);

// Threads of a block of the lane and the chunk kernel, where `plan` leaves it
// open: of the sizes that leave the fewest idle, the smallest, which spreads a
// small batch widest.
int LaneBlockThreads(const ScanPlan& plan, int threads);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SELECTIVE_SCAN_LANE_CUDA_H_
