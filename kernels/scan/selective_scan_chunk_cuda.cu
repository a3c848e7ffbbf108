#include <algorithm>
#include <cstdint>

#include "kernels/scan/scan_lanes.h"
#include "kernels/scan/selective_scan_chunk_cuda.h"
#include "kernels/scan/selective_scan_lane_cuda.h"
#include "simt/simt.h"

// Each sequence is cut into pieces of equal length that are scanned
// concurrently, by three kernels:
//   1. EndsKernel scans all pieces but the last from h = 0. It stores the state
//      at the end of each piece, and the sum of s (see scan_math.h) over the
//      piece. The sum determines how much an earlier state decays in the piece.
//   2. CarryKernel computes from these ends the state with which each piece
//      starts.
//   3. OutputKernel scans all pieces from these states and writes y.
namespace sfmamba::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kCarryThreads = 128;
// The length of a piece is a multiple of kPieceUnit, the size of LaneScan's
// largest unit. Therefore, only a sequence's last piece can end within a unit.
constexpr int kPieceUnit = 8;

// Returns piece number `piece` of sequence k. The piece is empty if it would
// begin beyond the end of the sequence.
__device__ __forceinline__ TokenRun PieceOf(const PackedSequences& sequences,
                                            int k, int piece, int pieces) {
  const int64_t begin = sequences.begin(k);
  const int64_t length = sequences.end(k) - begin;
  const int64_t units = (length + kPieceUnit - 1) / kPieceUnit;
  const int64_t size = (units + pieces - 1) / pieces * kPieceUnit;
  const int64_t from = min(length, piece * size);
  const int tokens = static_cast<int>(min(length, from + size) - from);
  return {sequences, begin + from, tokens, k, k, tokens};
}

// Returns the address at which the scratch memory holds the end of a piece of
// sequence k. An end is an array [states + 1, channels]. It contains the states
// after the piece's last token, followed by the sum of s over the piece. `ends`
// is the number of pieces per sequence without the last piece.
template <typename T>
__device__ __forceinline__ float* EndOf(const SelectiveScanArgs<T>& args,
                                        float* scratch, int k, int piece,
                                        int ends) {
  const int64_t end = int64_t{k} * ends + piece;
  return scratch + end * (args.states + 1) * args.channels;
}

// Stores the ends of all pieces, without the last piece of each sequence.
// blockIdx.x counts these pieces, and blockIdx.y selects channels.
template <typename T, int kStates, int kLanes>
__global__ void __launch_bounds__(kMostScanThreads, 1)
    EndsKernel(const SelectiveScanArgs<T> args, float* scratch, int ends) {
  using Scan = LaneScan<T, kStates, kLanes, 1, /*kOutput=*/false>;
  __shared__ typename Scan::Tiles tiles;
  const int k = blockIdx.x / ends, piece = blockIdx.x % ends;
  const int thread = blockIdx.y * blockDim.x + threadIdx.x;
  Scan scan(args, thread / kLanes);
  scan.Walk(PieceOf(args.sequences, k, piece, ends + 1),
            thread / kWarp * kWarp / kLanes < args.channels, tiles);
  float s_sum = scan.s_sum;
#pragma unroll
  for (int width = kLanes / 2; width > 0; width /= 2) {
    s_sum += __shfl_xor_sync(0xffffffffu, s_sum, width, kLanes);
  }
  if (!scan.active()) return;
  float* const end = EndOf(args, scratch, k, piece, ends) + scan.d();
#pragma unroll
  for (int n = 0; n < Scan::kOwn; ++n) {
    end[(scan.lane() * Scan::kOwn + n) * args.channels] = scan.h[0][n];
  }
  if (scan.lane() == 0) end[kStates * args.channels] = s_sum;
}

// Replaces the state at each piece's end, which was computed from h = 0, by the
// true state. blockIdx.x is the sequence, blockIdx.y is the state, and
// blockIdx.z selects channels.
template <typename T>
__global__ void CarryKernel(const SelectiveScanArgs<T> args, float* scratch,
                            int ends) {
  const int k = blockIdx.x, n = blockIdx.y;
  const int d = blockIdx.z * blockDim.x + threadIdx.x;
  if (d >= args.channels) return;
  float* const end = EndOf(args, scratch, k, 0, ends) + d;
  ChainEnds(args.A[n * args.a_stride + d], end + int64_t{n} * args.channels,
            end + int64_t{args.states} * args.channels,
            int64_t{args.states + 1} * args.channels, ends);
}

// Scans all pieces from their true initial states and writes y. blockIdx.x
// counts the pieces, and blockIdx.y selects channels.
template <typename T, int kStates, int kLanes>
__global__ void __launch_bounds__(kMostScanThreads, 1)
    OutputKernel(const SelectiveScanArgs<T> args, float* scratch, int pieces) {
  using Scan = LaneScan<T, kStates, kLanes, 1, /*kOutput=*/true>;
  __shared__ typename Scan::Tiles tiles;
  const int k = blockIdx.x / pieces, piece = blockIdx.x % pieces;
  const int thread = blockIdx.y * blockDim.x + threadIdx.x;
  Scan scan(args, thread / kLanes);
  if (piece > 0) {
    const float* const end =
        EndOf(args, scratch, k, piece - 1, pieces - 1) + scan.d();
#pragma unroll
    for (int n = 0; n < Scan::kOwn; ++n) {
      scan.h[0][n] = end[(scan.lane() * Scan::kOwn + n) * args.channels];
    }
  }
  scan.Walk(PieceOf(args.sequences, k, piece, pieces),
            thread / kWarp * kWarp / kLanes < args.channels, tiles);
}

template <int kStates, int kLanes, typename T>
absl::Status LaunchLanes(const SelectiveScanArgs<T>& args, const ScanPlan& plan,
                         float* scratch, CudaStream stream) {
  const int count = args.sequences.count, ends = plan.chunks - 1;
  const int wanted = args.channels * kLanes;
  const int threads = LaneBlockThreads(plan, wanted);
  const int blocks = (wanted + threads - 1) / threads;
  if (ends > 0) {
    const absl::Status first = simt::Launch(
        "selective_scan chunk ends", EndsKernel<T, kStates, kLanes>,
        dim3(count * ends, blocks), dim3(threads), stream, args, scratch, ends);
    if (!first.ok()) return first;
    const absl::Status second =
        simt::Launch("selective_scan chunk carry", CarryKernel<T>,
                     dim3(count, kStates,
                          (args.channels + kCarryThreads - 1) / kCarryThreads),
                     dim3(kCarryThreads), stream, args, scratch, ends);
    if (!second.ok()) return second;
  }
  return simt::Launch("selective_scan chunk", OutputKernel<T, kStates, kLanes>,
                      dim3(count * plan.chunks, blocks), dim3(threads), stream,
                      args, scratch, plan.chunks);
}

template <int kStates, typename T>
absl::Status LaunchStates(const SelectiveScanArgs<T>& args,
                          const ScanPlan& plan, float* scratch,
                          CudaStream stream) {
  switch (plan.lanes) {
    case 1:
      return LaunchLanes<kStates, 1>(args, plan, scratch, stream);
    case 2:
      return LaunchLanes<kStates, 2>(args, plan, scratch, stream);
    case 4:
      return LaunchLanes<kStates, 4>(args, plan, scratch, stream);
    default:
      return LaunchLanes<kStates, 8>(args, plan, scratch, stream);
  }
}

}  // namespace

template <typename T>
absl::Status SelectiveScanChunkCuda(const SelectiveScanArgs<T>& args,
                                    const ScanPlan& plan, float* scratch,
                                    CudaStream stream) {
  return args.states == 8 ? LaunchStates<8>(args, plan, scratch, stream)
                          : LaunchStates<16>(args, plan, scratch, stream);
}

template absl::Status SelectiveScanChunkCuda(const SelectiveScanArgs<float>&,
                                             const ScanPlan&, float*,
                                             CudaStream);
template absl::Status SelectiveScanChunkCuda(const SelectiveScanArgs<BFloat16>&,
                                             const ScanPlan&, float*,
                                             CudaStream);
template absl::Status SelectiveScanChunkCuda(const SelectiveScanArgs<Float16>&,
                                             const ScanPlan&, float*,
                                             CudaStream);

}  // namespace sfmamba::kernels
