#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_rows.h"
#include "kernels/sequence/layer_norm_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

constexpr int kThreads = 128;  // The number of threads in a block.

// The number of lanes that process a row. This is a whole warp, or half a warp
// if a lane loads 8 values at a time. In the second case, a warp processes two
// rows at a time, with half as many load instructions per row.
template <int V>
constexpr int kLanes = V == 8 ? 16 : 32;

// A lane's sums over its channels. V is 1, 4 or 8. With V = 1 or V = 4, a lane
// has one sum. With V = 8, a lane has two sums, one for each kGroup consecutive
// channels. These are the sums that two lanes would have with V = 4. The sum of
// a row is therefore bit-identical for V = 4 and V = 8.
constexpr int kGroup = 4;
template <int V>
using Sums = float[V <= kGroup ? 1 : V / kGroup];

// Returns the sum over the lanes of a row. The result is bit-identical in all
// of these lanes.
template <int V>
__device__ __forceinline__ float RowSum(Sums<V>& sums) {
  // The mask has only the lanes of this row, because the other row of the warp
  // may be at another instruction.
  const unsigned mask =
      V == 8 ? 0xffffu << threadIdx.y % 2 * kLanes<V> : 0xffffffffu;
#pragma unroll
  for (int lane = kLanes<V> / 2; lane > 0; lane /= 2) {
#pragma unroll
    for (float& sum : sums) sum += __shfl_xor_sync(mask, sum, lane);
  }
  if constexpr (V == 8) return sums[0] + sums[1];
  return sums[0];
}

// A row in the registers of its lanes. In lane l, values[n] holds V channels,
// the first of which is channel (n * kLanes<V> + l) * V. Values beyond the last
// channel are 0.
template <int V, int N>
struct Row {
  float values[N][V];
};

template <int V>
__device__ __forceinline__ int FirstChannel(int n) {
  return (n * kLanes<V> + threadIdx.x) * V;
}

// Reads V channels of x, adds args.add unless it is null, and rounds the sums
// to X.
template <int V, typename X, typename Y>
__device__ __forceinline__ void ReadVector(const LayerNormCudaArgs<X, Y>& args,
                                           int64_t row, int c, float (&to)[V]) {
  LoadFloats(args.x + row * args.x_stride + c, to);
  if (args.add == nullptr) return;
  float add[V];
  LoadFloats(args.add + row * args.add_stride + c, add);
#pragma unroll
  for (int i = 0; i < V; ++i) {
    to[i] = simt::ToFloat(simt::FromFloat<X>(to[i] + add[i]));
  }
}

template <int V, int N, typename X, typename Y>
__device__ __forceinline__ void ReadRow(const LayerNormCudaArgs<X, Y>& args,
                                        int64_t row, Row<V, N>* to) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const int c = FirstChannel<V>(n);
    if (c < args.channels) {
      ReadVector(args, row, c, to->values[n]);
    } else {
#pragma unroll
      for (int i = 0; i < V; ++i) to->values[n][i] = 0;
    }
  }
}

template <int V, int N, typename X>
__device__ __forceinline__ void WriteRow(int channels, const Row<V, N>& from,
                                         X* to) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const int c = FirstChannel<V>(n);
    if (c < channels) StoreFloats(to + c, from.values[n]);
  }
}

// Writes row `row` of the new x to args.kept if the row is one of the tokens to
// keep.
template <int V, int N, typename X, typename Y>
__device__ __forceinline__ void Keep(const LayerNormCudaArgs<X, Y>& args,
                                     int row, const Row<V, N>& from) {
  const int sequence = SequenceOf(args.sequences, row);
  const int64_t i = row - args.sequences.begin(sequence) - args.kept_first;
  if (i < 0 || i >= args.kept_count) return;
  WriteRow(
      args.channels, from,
      args.kept + (int64_t{sequence} * args.kept_count + i) * args.channels);
}

// Exchanges the rows `head` and `tail` of x. `held` must be row `head` on entry
// and is row `tail` on return.
template <int V, int N, typename X, typename Y>
__device__ __forceinline__ void Exchange(const LayerNormCudaArgs<X, Y>& args,
                                         int64_t head, int64_t tail,
                                         Row<V, N>* held) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const int c = FirstChannel<V>(n);
    if (c >= args.channels) continue;
    float other[V];
    ReadVector(args, tail, c, other);
    StoreFloats(args.x + tail * args.x_stride + c, held->values[n]);
    StoreFloats(args.x + head * args.x_stride + c, other);
#pragma unroll
    for (int i = 0; i < V; ++i) held->values[n][i] = other[i];
  }
}

// Normalises x and writes the result to row `row` of y. `share` is 1 /
// channels. Calls fmaf() explicitly, because the compiler might fuse
// multiplications and additions differently in the two calls of this function.
template <int V, int N, typename X, typename Y>
__device__ __forceinline__ void Normalize(const LayerNormCudaArgs<X, Y>& args,
                                          float share, const Row<V, N>& x,
                                          int64_t row) {
  Sums<V> sums = {};
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < V; ++i) sums[i / kGroup] += x.values[n][i];
  }
  const float sum = RowSum<V>(sums);
  Sums<V> squares = {};
#pragma unroll
  for (int n = 0; n < N; ++n) {
    if (FirstChannel<V>(n) >= args.channels) continue;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float difference = fmaf(sum, -share, x.values[n][i]);
      squares[i / kGroup] = fmaf(difference, difference, squares[i / kGroup]);
    }
  }
  const float scale = rsqrtf(fmaf(RowSum<V>(squares), share, args.eps));
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const int c = FirstChannel<V>(n);
    if (c >= args.channels) continue;
    float gamma[V], beta[V], y[V];
    LoadFloats(args.gamma + c, gamma);
    LoadFloats(args.beta + c, beta);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float difference = fmaf(sum, -share, x.values[n][i]);
      y[i] = fmaf(difference * scale, gamma[i], beta[i]);
    }
    StoreFloats(args.y + row * args.y_stride + c, y);
  }
}

// Normalises one row. If args.swap is true, the lanes of a sequence's first row
// also normalise its last row.
template <int V, int N, typename X, typename Y>
__device__ __forceinline__ void NormalizeRow(
    const LayerNormCudaArgs<X, Y>& args, float share, int row) {
  int64_t head = row, tail = row;
  if (args.swap) {
    const int sequence = SequenceOf(args.sequences, row);
    const int64_t first = args.sequences.begin(sequence);
    const int64_t last = args.sequences.end(sequence) - 1;
    if (row == first) {
      tail = last;
    } else if (row == last) {
      return;  // The lanes of the first row normalise it.
    }
  }
  Row<V, N> x;
  ReadRow(args, head, &x);
  Normalize(args, share, x, tail);
  if (head != tail) {
    Exchange(args, head, tail, &x);
    Normalize(args, share, x, head);
  } else if (args.kept != nullptr) {
    Keep(args, row, x);
  } else if (args.add != nullptr) {
    WriteRow(args.channels, x, args.x + int64_t{row} * args.x_stride);
  }
}

// threadIdx.x is the lane. threadIdx.y and blockIdx.x select the row.
template <typename X, typename Y, int V, int N>
__global__ void NormalizeKernel(LayerNormCudaArgs<X, Y> args, float share) {
  const int begin = static_cast<int>(args.sequences.begin(0));
  const int end =
      static_cast<int>(args.sequences.end(args.sequences.count - 1));
  constexpr int kRows = kThreads / kLanes<V>;
  for (int row = begin + blockIdx.x * kRows + threadIdx.y; row < end;
       row += gridDim.x * kRows) {
    NormalizeRow<V, N>(args, share, row);
  }
}

template <int V, int N, typename X, typename Y>
absl::Status LaunchRows(const LayerNormCudaArgs<X, Y>& args,
                        CudaStream stream) {
  constexpr int kRows = kThreads / kLanes<V>;
  const PackedSequences& sequences = args.sequences;
  int blocks = kRaggedBlocks;
  if (sequences.offsets == nullptr) {
    const int64_t rows = int64_t{sequences.count} * sequences.length;
    blocks = static_cast<int>((rows + kRows - 1) / kRows);
  }
  return simt::Launch("layer_norm", NormalizeKernel<X, Y, V, N>, dim3(blocks),
                      dim3(kLanes<V>, kRows), stream, args,
                      1.0f / args.channels);
}

// Launches the kernel with the first of the numbers kN, kMore... for which a
// Row<V, number> holds all channels.
template <int V, typename X, typename Y, int kN, int... kMore>
absl::Status LaunchFitting(const LayerNormCudaArgs<X, Y>& args,
                           CudaStream stream) {
  if constexpr (sizeof...(kMore) > 0) {
    if (args.channels > kN * V * kLanes<V>) {
      return LaunchFitting<V, X, Y, kMore...>(args, stream);
    }
  }
  return LaunchRows<V, kN>(args, stream);
}

// Returns true if all rows can be accessed V values at a time.
template <int V, typename X, typename Y>
bool AreVectors(const LayerNormCudaArgs<X, Y>& args) {
  return InVectors<V>(args.x, args.x_stride, args.channels) &&
         InVectors<V>(args.add, args.add_stride, args.channels) &&
         InVectors<V>(args.kept, args.channels, args.channels) &&
         InVectors<V>(args.y, args.y_stride, args.channels) &&
         InVectors<V>(args.gamma, 0, args.channels) &&
         InVectors<V>(args.beta, 0, args.channels);
}

}  // namespace

template <typename X, typename Y>
absl::Status LayerNormCuda(const LayerNormCudaArgs<X, Y>& args,
                           CudaStream stream) {
  if (args.channels > kLayerNormCudaChannels) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer_norm: got ", args.channels,
                     " channels, expected at most ", kLayerNormCudaChannels));
  }
  if (args.sequences.count == 0) return absl::OkStatus();
  if (AreVectors<4>(args)) {
    // The template arguments after Y are the choices for N. A Row with N fits
    // up to N * 128 channels. The choices suit the stages of most models, which
    // have 80, 96, 98 or 128 channels, or up to 16 times as many.
    if constexpr (sizeof(X) == 2) {
      // For more channels, a lane with V = 8 would need too many registers.
      if (args.channels <= 8 * 128 && AreVectors<8>(args)) {
        return LaunchFitting<8, X, Y, 1, 2, 3, 4, 5, 6, 8>(args, stream);
      }
      return LaunchFitting<4, X, Y, 4, 16>(args, stream);
    } else {
      return LaunchFitting<4, X, Y, 1, 2, 3, 4, 5, 6, 8, 16>(args, stream);
    }
  }
  return LaunchFitting<1, X, Y, 8, 64>(args, stream);
}

template absl::Status LayerNormCuda(const LayerNormCudaArgs<float, float>&,
                                    CudaStream);
template absl::Status LayerNormCuda(const LayerNormCudaArgs<float, BFloat16>&,
                                    CudaStream);
template absl::Status LayerNormCuda(const LayerNormCudaArgs<float, Float16>&,
                                    CudaStream);
template absl::Status LayerNormCuda(
    const LayerNormCudaArgs<BFloat16, BFloat16>&, CudaStream);
template absl::Status LayerNormCuda(const LayerNormCudaArgs<Float16, Float16>&,
                                    CudaStream);

}  // namespace sfmamba::kernels
