// Device code that computes the mean over tokens. Only .cu files include this
// header.
#ifndef SFMAMBA_KERNELS_SEQUENCE_DEVICE_TOKEN_MEAN_H_
#define SFMAMBA_KERNELS_SEQUENCE_DEVICE_TOKEN_MEAN_H_

#include <cstdint>

#include "kernels/sequence/token_mean.h"
#include "simt/simt.h"

namespace sfmamba::kernels {

// The number of threads along the channels. Each thread reads a vector of up to
// 16 bytes, so all these threads together read up to 128 bytes, which is a
// cache line.
constexpr int kMeanColumns = 8;
// The maximum number of threads along the tokens. In each round, a thread
// computes the sum of kTokenMeanBlock (64) tokens. All threads together process
// at most 1024 tokens in a round. Most sequences are not longer, so they need
// only one round.
constexpr int kMeanLanes = 16;
constexpr int kMeanLoads = 8;  // Tokens that a thread loads before it adds.

static_assert(kTokenMeanBlock % kMeanLoads == 0);

// The sums of a block's threads, in shared memory.
template <int V>
using MeanSums = simt::Shared<float, kMeanLanes * kMeanColumns * V>;

// Sets `sum` to the sum of the tokens [begin, end), added in order.
// MeanOfTokens() describes the type Tokens.
template <int V, typename Tokens>
__device__ __forceinline__ void SumTokens(const Tokens& tokens, int64_t begin,
                                          int64_t end, float (&sum)[V]) {
#pragma unroll
  for (int n = 0; n < V; ++n) sum[n] = 0;
  for (int64_t i = begin; i < end; i += kMeanLoads) {
    typename Tokens::Values values[kMeanLoads];
#pragma unroll
    for (int t = 0; t < kMeanLoads; ++t) {
      if (i + t < end) values[t] = tokens.Load(i + t);
    }
#pragma unroll
    for (int t = 0; t < kMeanLoads; ++t) {
      if (i + t >= end) continue;
      tokens.Use(i + t, values[t]);
#pragma unroll
      for (int n = 0; n < V; ++n) sum[n] += simt::ToFloat(values[t][n]);
    }
  }
}

// Sets `mean` to the mean of `count` tokens, in the threads with threadIdx.y =
// 0. Adds in the same order as TokenMeanScalar(). A block must have
// kMeanColumns by at most kMeanLanes threads, and all its threads must call
// this function. `active` is false in threads that have no channels.
//
// The type Tokens has a vector type Values and two functions. Load(i) returns V
// channels of token i. Use(i, values) is called once for each token, after
// Load(i).
template <int V, typename Tokens>
__device__ __forceinline__ void MeanOfTokens(const Tokens& tokens,
                                             int64_t count, bool active,
                                             MeanSums<V>& sums,
                                             float (&mean)[V]) {
#pragma unroll
  for (int n = 0; n < V; ++n) mean[n] = 0;
  const int lanes = blockDim.y;
  for (int64_t round = 0; round < count; round += lanes * kTokenMeanBlock) {
    const int64_t from = round + threadIdx.y * kTokenMeanBlock;
    if (active && from < count) {
      float sum[V];
      SumTokens(tokens, from, min(from + kTokenMeanBlock, count), sum);
#pragma unroll
      for (int n = 0; n < V; ++n) {
        sums[(threadIdx.y * V + n) * kMeanColumns + threadIdx.x] = sum[n];
      }
    }
    __syncthreads();
    if (active && threadIdx.y == 0) {
      for (int lane = 0; lane < lanes; ++lane) {
        if (round + lane * kTokenMeanBlock >= count) break;
#pragma unroll
        for (int n = 0; n < V; ++n) {
          mean[n] += sums[(lane * V + n) * kMeanColumns + threadIdx.x];
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int n = 0; n < V; ++n) mean[n] = mean[n] / static_cast<float>(count);
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_DEVICE_TOKEN_MEAN_H_
