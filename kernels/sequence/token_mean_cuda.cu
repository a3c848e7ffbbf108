#include <cstdint>

#include "kernels/cuda/device_rows.h"
#include "kernels/sequence/token_mean_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

// Threads along the channels. Each has a vector of up to 16 bytes, so together
// they read a line of 128 bytes.
constexpr int kColumns = 8;
// Threads along the tokens. In each round, a thread sums kTokenMeanBlock tokens
// and a block 1024, so most sequences need one round.
constexpr int kLanes = 16;
constexpr int kLoads = 8;  // Tokens that a thread loads before it adds.

static_assert(kTokenMeanBlock % kLoads == 0);

// Sums tokens [begin, end) in order.
template <int V, typename T>
__device__ __forceinline__ void Sum(const TokenMeanArgs<T>& args, int c,
                                    int64_t begin, int64_t end,
                                    float (&sum)[V]) {
#pragma unroll
  for (int n = 0; n < V; ++n) sum[n] = 0;
  for (int64_t i = begin; i < end; i += kLoads) {
    simt::Vector<T, V> values[kLoads];
#pragma unroll
    for (int t = 0; t < kLoads; ++t) {
      if (i + t < end) {
        values[t] = simt::Load<V>(args.x + (i + t) * args.x_stride + c);
      }
    }
#pragma unroll
    for (int t = 0; t < kLoads; ++t) {
      if (i + t >= end) continue;
#pragma unroll
      for (int n = 0; n < V; ++n) sum[n] += simt::ToFloat(values[t][n]);
    }
  }
}

// Grid: x is the sequence, y is over channels. Block: x is over groups of V
// channels, y over kTokenMeanBlock tokens each. The threads with y = 0 add up
// the sums in order.
template <typename T, int V>
__global__ void MeanKernel(TokenMeanArgs<T> args) {
  __shared__ simt::Shared<float, kLanes * kColumns * V> sums;
  const int c = (blockIdx.y * kColumns + threadIdx.x) * V;
  const bool active = c < args.channels;
  const int64_t begin = args.sequences.begin(blockIdx.x) + args.margin;
  const int64_t end = args.sequences.end(blockIdx.x) - args.margin;
  float total[V] = {};
  for (int64_t round = begin; round < end; round += kLanes * kTokenMeanBlock) {
    const int64_t from = round + threadIdx.y * kTokenMeanBlock;
    if (active && from < end) {
      float sum[V];
      Sum(args, c, from, min(from + kTokenMeanBlock, end), sum);
#pragma unroll
      for (int n = 0; n < V; ++n) {
        sums[(threadIdx.y * V + n) * kColumns + threadIdx.x] = sum[n];
      }
    }
    __syncthreads();
    if (active && threadIdx.y == 0) {
      for (int lane = 0; lane < kLanes; ++lane) {
        if (round + lane * kTokenMeanBlock >= end) break;
#pragma unroll
        for (int n = 0; n < V; ++n) {
          total[n] += sums[(lane * V + n) * kColumns + threadIdx.x];
        }
      }
    }
    __syncthreads();
  }
  if (!active || threadIdx.y != 0) return;
  const float count = static_cast<float>(end - begin);
#pragma unroll
  for (int n = 0; n < V; ++n) total[n] = total[n] / count;
  const int64_t at = blockIdx.x * args.mean_stride + c;
  StoreFloats(args.mean + at, total);
  if (args.copy != nullptr) StoreFloats(args.copy + at, total);
}

template <int V, typename T>
absl::Status LaunchVectors(const TokenMeanArgs<T>& args, CudaStream stream) {
  constexpr int kChannels = kColumns * V;
  const int columns = (args.channels + kChannels - 1) / kChannels;
  return simt::Launch("token_mean", MeanKernel<T, V>,
                      dim3(args.sequences.count, columns),
                      dim3(kColumns, kLanes), stream, args);
}

}  // namespace

template <typename T>
absl::Status TokenMeanCuda(const TokenMeanArgs<T>& args, CudaStream stream) {
  constexpr int kWide = kWidestVector<T>;
  const bool wide =
      InVectors<kWide>(args.x, args.x_stride, args.channels) &&
      InVectors<kWide>(args.mean, args.mean_stride, args.channels) &&
      InVectors<kWide>(args.copy, args.mean_stride, args.channels);
  return wide ? LaunchVectors<kWide>(args, stream)
              : LaunchVectors<1>(args, stream);
}

template absl::Status TokenMeanCuda(const TokenMeanArgs<float>&, CudaStream);
template absl::Status TokenMeanCuda(const TokenMeanArgs<BFloat16>&, CudaStream);
template absl::Status TokenMeanCuda(const TokenMeanArgs<Float16>&, CudaStream);

}  // namespace sfmamba::kernels
