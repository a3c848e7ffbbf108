// The mean over tokens in device code. Only .cu files include this header.
#ifndef SFMAMBA_KERNELS_SEQUENCE_DEVICE_TOKEN_MEAN_H_
#define SFMAMBA_KERNELS_SEQUENCE_DEVICE_TOKEN_MEAN_H_

#include <cstdint>

#include "kernels/sequence/token_mean.h"
#include "simt/simt.h"

namespace sfmamba::kernels {

// Threads along the channels. Each has a vector of up to 16 bytes, so together
// they read a line of 128 bytes.
constexpr int kMeanColumns = 8;
// The most threads along the tokens. In each round, a thread sums
// kTokenMeanBlock tokens and a block 1024, so most sequences need one round.
constexpr int kMeanLanes = 16;
constexpr int kMeanLoads = 8;  // Tokens that a thread loads before it adds.

static_assert(kTokenMeanBlock % kMeanLoads == 0);

// The sums of a block's threads, in shared memory.
template <int V>
using MeanSums = simt::Shared<float, kMeanLanes * kMeanColumns * V>;

// Sums tokens [begin, end) in order, see MeanOfTokens().
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

// Sets `mean` to the mean of `count` tokens, summed as TokenMeanScalar does,
// in the threads with y = 0. All threads of a block of (kMeanColumns, at most
// kMeanLanes) call it; those that are not `active` have no channels. Tokens has
// a vector type Values, Load(i), which returns V channels of token i, and
// Use(i, values), which is called once for each token after its Load().
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
