#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_rows.h"
#include "kernels/sequence/layer_norm_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

constexpr int kWarp = 32;
// Warps in a block. Each processes one row at a time.
constexpr int kRows = 4;
constexpr unsigned kAllLanes = 0xffffffff;

// Returns the sum of x over the warp, bit-identical on all lanes.
__device__ __forceinline__ float WarpSum(float x) {
#pragma unroll
  for (int lane = kWarp / 2; lane > 0; lane /= 2) {
    x += __shfl_xor_sync(kAllLanes, x, lane);
  }
  return x;
}

// A row in a warp's registers. For each n below N, lane l holds V channels from
// (n * 32 + l) * V on, or zeros beyond the last channel.
template <int V, int N>
struct Row {
  float values[N][V];
};

template <int V>
__device__ __forceinline__ int FirstChannel(int n) {
  return (n * kWarp + threadIdx.x) * V;
}

// Reads V values of x after the addition, rounded to X.
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

template <int V, int N, typename X, typename Y>
__device__ __forceinline__ void WriteX(const LayerNormCudaArgs<X, Y>& args,
                                       int64_t row, const Row<V, N>& from) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const int c = FirstChannel<V>(n);
    if (c >= args.channels) continue;
    StoreFloats(args.x + row * args.x_stride + c, from.values[n]);
  }
}

// Exchanges rows `head` and `tail` of x. `held` is row `head` on entry and row
// `tail` on return.
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

// Writes row `row` of y. `share` is 1 / channels. Multiply-adds are explicit,
// since the compiler might contract the two calls of this function differently.
template <int V, int N, typename X, typename Y>
__device__ __forceinline__ void Normalize(const LayerNormCudaArgs<X, Y>& args,
                                          float share, const Row<V, N>& x,
                                          int64_t row) {
  float sum = 0;
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int i = 0; i < V; ++i) sum += x.values[n][i];
  }
  sum = WarpSum(sum);
  float squares = 0;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    if (FirstChannel<V>(n) >= args.channels) continue;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float difference = fmaf(sum, -share, x.values[n][i]);
      squares = fmaf(difference, difference, squares);
    }
  }
  const float scale = rsqrtf(fmaf(WarpSum(squares), share, args.eps));
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

// Normalises one row. With `swap`, the warp with a sequence's first row also
// normalises the last one.
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
      return;  // The warp with the first row normalises this one.
    }
  }
  Row<V, N> x;
  ReadRow(args, head, &x);
  Normalize(args, share, x, tail);
  if (head != tail) {
    Exchange(args, head, tail, &x);
    Normalize(args, share, x, head);
  } else if (args.add != nullptr) {
    WriteX(args, row, x);
  }
}

// Block: x is the lane, y is over rows. Grid: x is over rows.
template <typename X, typename Y, int V, int N>
__global__ void NormalizeKernel(LayerNormCudaArgs<X, Y> args, float share) {
  const int begin = static_cast<int>(args.sequences.begin(0));
  const int end =
      static_cast<int>(args.sequences.end(args.sequences.count - 1));
  for (int row = begin + blockIdx.x * kRows + threadIdx.y; row < end;
       row += gridDim.x * kRows) {
    NormalizeRow<V, N>(args, share, row);
  }
}

template <int V, int N, typename X, typename Y>
absl::Status LaunchRows(const LayerNormCudaArgs<X, Y>& args,
                        CudaStream stream) {
  const PackedSequences& sequences = args.sequences;
  int blocks = kRaggedBlocks;
  if (sequences.offsets == nullptr) {
    const int64_t rows = int64_t{sequences.count} * sequences.length;
    blocks = static_cast<int>((rows + kRows - 1) / kRows);
  }
  return simt::Launch("layer_norm", NormalizeKernel<X, Y, V, N>, dim3(blocks),
                      dim3(kWarp, kRows), stream, args, 1.0f / args.channels);
}

// Launches with the first N of kN, kMore... for which a Row holds all channels.
template <int V, typename X, typename Y, int kN, int... kMore>
absl::Status LaunchFitting(const LayerNormCudaArgs<X, Y>& args,
                           CudaStream stream) {
  if constexpr (sizeof...(kMore) > 0) {
    if (args.channels > kN * V * kWarp) {
      return LaunchFitting<V, X, Y, kMore...>(args, stream);
    }
  }
  return LaunchRows<V, kN>(args, stream);
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
  // Vectors are no wider than 4 values because rows are short: with wider ones,
  // more lanes would be idle at the end of a row.
  const bool fours = InVectors<4>(args.x, args.x_stride, args.channels) &&
                     InVectors<4>(args.add, args.add_stride, args.channels) &&
                     InVectors<4>(args.y, args.y_stride, args.channels) &&
                     InVectors<4>(args.gamma, 0, args.channels) &&
                     InVectors<4>(args.beta, 0, args.channels);
  if (!fours) return LaunchFitting<1, X, Y, 8, 64>(args, stream);
  // The models' stages have 80, 96, 98 or 128 channels, or up to 16 times that.
  return LaunchFitting<4, X, Y, 1, 2, 3, 4, 5, 6, 8, 16>(args, stream);
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
