#include <algorithm>
#include <cstdint>

#include "kernels/scan/scan_lanes.h"
#include "kernels/scan/selective_scan_lane_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

constexpr int kWarp = 32;

// The number of blocks per multiprocessor. This is the largest number with
// which the compiler spills no registers.
template <int kStates, int kLanes, int kChannels>
constexpr int kBlocks = kLanes <= 2 && (kStates * kChannels > 8) ? 1 : 2;

// blockIdx.x is the row, and blockIdx.y selects channels. Row r consists of the
// sequences [count * r / rows, count * (r + 1) / rows).
template <typename T, int kStates, int kLanes, int kChannels>
__global__ void __launch_bounds__(kMostScanThreads,
                                  kBlocks<kStates, kLanes, kChannels>)
    LaneKernel(const SelectiveScanArgs<T> args) {
  using Scan = LaneScan<T, kStates, kLanes, kChannels, /*kOutput=*/true>;
  __shared__ typename Scan::Tiles tiles;
  const int64_t count = args.sequences.count;
  const int begin = static_cast<int>(count * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(count * (blockIdx.x + 1) / gridDim.x);
  const int thread = blockIdx.y * blockDim.x + threadIdx.x;
  const int warp_begin = thread / kWarp * kWarp;
  Scan scan(args, thread / kLanes * kChannels);
  scan.Walk(RunOf(args.sequences, begin, end),
            warp_begin / kLanes * kChannels < args.channels, tiles);
}

template <typename T>
bool InPairs(const T* p, int64_t stride) {
  return reinterpret_cast<uintptr_t>(p) % (2 * sizeof(T)) == 0 &&
         stride % 2 == 0;
}

template <int kStates, int kLanes, int kChannels, typename T>
absl::Status LaunchLanes(const SelectiveScanArgs<T>& args, const ScanPlan& plan,
                         CudaStream stream) {
  const int wanted = (args.channels + kChannels - 1) / kChannels * kLanes;
  const int threads = LaneBlockThreads(plan, wanted);
  const int count = args.sequences.count;
  const int rows = plan.rows == 0 ? count : std::min(plan.rows, count);
  return simt::Launch("selective_scan lane",
                      LaneKernel<T, kStates, kLanes, kChannels>,
                      dim3(rows, (wanted + threads - 1) / threads),
                      dim3(threads), stream, args);
}

template <int kStates, typename T>
absl::Status LaunchStates(const SelectiveScanArgs<T>& args,
                          const ScanPlan& plan, CudaStream stream) {
  const bool pairs = plan.channels_per_thread == 2 && args.channels % 2 == 0 &&
                     InPairs(args.u, args.u_stride) &&
                     InPairs(args.dt, args.dt_stride) &&
                     InPairs(args.y, args.y_stride);
  switch (plan.lanes) {
    case 1:
      return pairs ? LaunchLanes<kStates, 1, 2>(args, plan, stream)
                   : LaunchLanes<kStates, 1, 1>(args, plan, stream);
    case 2:
      return LaunchLanes<kStates, 2, 1>(args, plan, stream);
    case 4:
      return LaunchLanes<kStates, 4, 1>(args, plan, stream);
    default:
      return LaunchLanes<kStates, 8, 1>(args, plan, stream);
  }
}

}  // namespace

int LaneBlockThreads(const ScanPlan& plan, int threads) {
  if (plan.threads != 0) return plan.threads;
  const auto idle = [threads](int block) {
    return (threads + block - 1) / block * block - threads;
  };
  int best = kLeastScanThreads;
  for (int block = best; block <= kMostScanThreads; block += kWarp) {
    if (idle(block) < idle(best)) best = block;
  }
  return best;
}

template <typename T>
absl::Status SelectiveScanLaneCuda(const SelectiveScanArgs<T>& args,
                                   const ScanPlan& plan, CudaStream stream) {
  return args.states == 8 ? LaunchStates<8>(args, plan, stream)
                          : LaunchStates<16>(args, plan, stream);
}

template absl::Status SelectiveScanLaneCuda(const SelectiveScanArgs<float>&,
                                            const ScanPlan&, CudaStream);
template absl::Status SelectiveScanLaneCuda(const SelectiveScanArgs<BFloat16>&,
                                            const ScanPlan&, CudaStream);
template absl::Status SelectiveScanLaneCuda(const SelectiveScanArgs<Float16>&,
                                            const ScanPlan&, CudaStream);

}  // namespace sfmamba::kernels
