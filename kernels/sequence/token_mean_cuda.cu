#include <cstdint>

#include "kernels/cuda/device_rows.h"
#include "kernels/sequence/device_token_mean.h"
#include "kernels/sequence/token_mean_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

// Loads V channels of the tokens of one sequence, for MeanOfTokens().
template <typename T, int V>
struct SequenceTokens {
  using Values = simt::Vector<T, V>;

  __device__ __forceinline__ Values Load(int64_t i) const {
    return simt::Load<V>(x + i * stride);
  }
  __device__ __forceinline__ void Use(int64_t, const Values&) const {}

  const T* x;
  int64_t stride;
};

// blockIdx.x is the sequence, and blockIdx.y selects channels. Each threadIdx.x
// sums V channels, and each threadIdx.y sums kTokenMeanBlock tokens at a time.
template <typename T, int V>
__global__ void MeanKernel(TokenMeanArgs<T> args) {
  __shared__ MeanSums<V> sums;
  const int c = (blockIdx.y * kMeanColumns + threadIdx.x) * V;
  const bool active = c < args.channels;
  const int64_t begin = args.sequences.begin(blockIdx.x) + args.margin;
  const int64_t end = args.sequences.end(blockIdx.x) - args.margin;
  const SequenceTokens<T, V> tokens = {args.x + begin * args.x_stride + c,
                                       args.x_stride};
  float mean[V];
  MeanOfTokens(tokens, end - begin, active, sums, mean);
  if (!active || threadIdx.y != 0) return;
  const int64_t at = blockIdx.x * args.mean_stride + c;
  StoreFloats(args.mean + at, mean);
  if (args.copy != nullptr) StoreFloats(args.copy + at, mean);
}

template <int V, typename T>
absl::Status LaunchVectors(const TokenMeanArgs<T>& args, CudaStream stream) {
  constexpr int kChannels = kMeanColumns * V;
  const int columns = (args.channels + kChannels - 1) / kChannels;
  return simt::Launch("token_mean", MeanKernel<T, V>,
                      dim3(args.sequences.count, columns),
                      dim3(kMeanColumns, kMeanLanes), stream, args);
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
