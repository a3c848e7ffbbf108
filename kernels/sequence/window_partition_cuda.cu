#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device_rows.h"
#include "kernels/sequence/device_token_mean.h"
#include "kernels/sequence/window_partition_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

constexpr int kThreads = 256;  // The maximum number of threads in a block.

// kCut copies from the map to the tokens, kJoin from the tokens to the map.
enum class Direction { kCut, kJoin };

// Copies V channels of one token. `inside` is true if the map contains the
// token.
template <Direction kDirection, int V, typename T, typename X>
__device__ __forceinline__ void Move(T* pixel, X* token, bool inside) {
  float values[V];
  if constexpr (kDirection == Direction::kJoin) {
    if (!inside) return;
    LoadFloats(token, values);
    StoreFloats(pixel, values);
  } else {
    if (inside) {
      LoadFloats(pixel, values);
    } else {
#pragma unroll
      for (int n = 0; n < V; ++n) values[n] = 0;
    }
    StoreFloats(token, values);
  }
}

// blockIdx.x counts the rows of all windows, and blockIdx.y selects channels.
// Each threadIdx.x copies V channels, and threadIdx.y counts the tokens in a
// row of a window.
template <Direction kDirection, typename T, typename X, int V>
__global__ void MoveKernel(WindowArgs<T, X> args) {
  const int c = (blockIdx.y * blockDim.x + threadIdx.x) * V;
  if (c >= args.channels) return;
  const int rows = (args.map_height + args.height - 1) / args.height;
  const int columns = (args.map_width + args.width - 1) / args.width;
  const int window = blockIdx.x / args.height;
  const int i = blockIdx.x - window * args.height;
  const int window_row = window / columns;  // Counted over all images.
  const int image = window_row / rows;
  const int map_i = (window_row - image * rows) * args.height + i;
  const int map_j = (window - window_row * columns) * args.width;
  const int64_t before =  // The number of tokens before the row's first.
      int64_t{window} * (args.height * args.width + 2 * args.margin) +
      args.margin + i * args.width;
  T* pixels = args.map + image * args.image_stride + map_i * args.row_stride +
              map_j * args.pixel_stride + c;
  X* tokens = args.tokens + before * args.token_stride + c;
#pragma unroll 4
  for (int j = threadIdx.y; j < args.width; j += blockDim.y) {
    const bool inside = map_i < args.map_height && map_j + j < args.map_width;
    Move<kDirection, V>(pixels + j * args.pixel_stride,
                        tokens + j * args.token_stride, inside);
  }
}

// Loads V channels of the tokens of one window, for MeanOfTokens(). Use()
// copies each token to the output.
template <typename T, typename X, int V>
struct WindowTokens {
  using Values = simt::Vector<T, V>;

  __device__ __forceinline__ Values Load(int64_t token) const {
    const int i = static_cast<int>(token) / args.width;
    const int j = static_cast<int>(token) - i * args.width;
    if (i < rows && j < columns) {
      return simt::Load<V>(pixels + i * args.row_stride +
                           j * args.pixel_stride);
    }
    Values zeros;
#pragma unroll
    for (int n = 0; n < V; ++n) zeros[n] = simt::FromFloat<T>(0);
    return zeros;
  }
  __device__ __forceinline__ void Use(int64_t token,
                                      const Values& values) const {
    float floats[V];
#pragma unroll
    for (int n = 0; n < V; ++n) floats[n] = simt::ToFloat(values[n]);
    StoreFloats(tokens + token * args.token_stride, floats);
  }

  const WindowArgs<T, X>& args;
  const T* pixels;    // The window's first pixel.
  X* tokens;          // The window's first token after the margin.
  int rows, columns;  // Rows and columns of the map from `pixels` on.
};

// Copies a window to the tokens and sets its two auxiliary tokens to the mean
// of its tokens. blockIdx.x is the window, and blockIdx.y selects channels.
// Each threadIdx.x handles V channels, and each threadIdx.y handles
// kTokenMeanBlock tokens at a time.
template <typename T, typename X, int V>
__global__ void CutWithMeanKernel(WindowArgs<T, X> args) {
  __shared__ MeanSums<V> sums;
  const int c = (blockIdx.y * kMeanColumns + threadIdx.x) * V;
  const bool active = c < args.channels;
  const int window_rows = (args.map_height + args.height - 1) / args.height;
  const int window_columns = (args.map_width + args.width - 1) / args.width;
  // The row of windows is counted over all images.
  const int window_row = blockIdx.x / window_columns;
  const int image = window_row / window_rows;
  const int map_i = (window_row - image * window_rows) * args.height;
  const int map_j = (blockIdx.x - window_row * window_columns) * args.width;
  const int64_t count = int64_t{args.height} * args.width;
  X* const head =
      args.tokens + blockIdx.x * (count + 2) * args.token_stride + c;
  const WindowTokens<T, X, V> tokens = {
      args,
      args.map + image * args.image_stride + map_i * args.row_stride +
          map_j * args.pixel_stride + c,
      head + args.token_stride, args.map_height - map_i,
      args.map_width - map_j};
  float mean[V];
  MeanOfTokens(tokens, count, active, sums, mean);
  if (!active || threadIdx.y != 0) return;
  StoreFloats(head, mean);
  StoreFloats(head + (count + 1) * args.token_stride, mean);
}

template <int V, typename T, typename X>
absl::Status LaunchWithMean(const WindowArgs<T, X>& args, CudaStream stream) {
  constexpr int kChannels = kMeanColumns * V;
  const int windows = args.images *
                      ((args.map_height + args.height - 1) / args.height) *
                      ((args.map_width + args.width - 1) / args.width);
  const int64_t blocks =
      (int64_t{args.height} * args.width + kTokenMeanBlock - 1) /
      kTokenMeanBlock;
  const int lanes = static_cast<int>(std::min<int64_t>(kMeanLanes, blocks));
  return simt::Launch(
      "window_mean", CutWithMeanKernel<T, X, V>,
      dim3(windows, (args.channels + kChannels - 1) / kChannels),
      dim3(kMeanColumns, lanes), stream, args);
}

template <Direction kDirection, int V, typename T, typename X>
absl::Status LaunchVectors(const WindowArgs<T, X>& args, CudaStream stream) {
  if constexpr (kDirection == Direction::kCut) {
    if (args.mean) return LaunchWithMean<V>(args, stream);
  }
  const int rows = (args.map_height + args.height - 1) / args.height;
  const int columns = (args.map_width + args.width - 1) / args.width;
  const int groups = args.channels / V;
  const int blocks = (groups + kThreads - 1) / kThreads;
  const int threads = (groups + blocks - 1) / blocks;
  return simt::Launch("window", MoveKernel<kDirection, T, X, V>,
                      dim3(args.images * rows * columns * args.height, blocks),
                      dim3(threads, std::min(args.width, kThreads / threads)),
                      stream, args);
}

template <Direction kDirection, typename T, typename X>
absl::Status LaunchAll(const WindowArgs<T, X>& args, CudaStream stream) {
  constexpr int kWide = kWidestVector<T>;
  const bool wide =
      InVectors<kWide>(args.map, args.pixel_stride, args.channels) &&
      InVectors<kWide>(args.map, args.row_stride, args.channels) &&
      InVectors<kWide>(args.map, args.image_stride, args.channels) &&
      InVectors<kWide>(args.tokens, args.token_stride, args.channels);
  return wide ? LaunchVectors<kDirection, kWide>(args, stream)
              : LaunchVectors<kDirection, 1>(args, stream);
}

}  // namespace

template <typename T, typename X>
absl::Status WindowPartitionCuda(const WindowArgs<T, X>& args,
                                 CudaStream stream) {
  return LaunchAll<Direction::kCut>(args, stream);
}

template <typename T, typename X>
absl::Status WindowReverseCuda(const WindowArgs<T, X>& args,
                               CudaStream stream) {
  return LaunchAll<Direction::kJoin>(args, stream);
}

template absl::Status WindowPartitionCuda(const WindowArgs<float, float>&,
                                          CudaStream);
template absl::Status WindowPartitionCuda(const WindowArgs<BFloat16, BFloat16>&,
                                          CudaStream);
template absl::Status WindowPartitionCuda(const WindowArgs<Float16, Float16>&,
                                          CudaStream);
template absl::Status WindowPartitionCuda(const WindowArgs<BFloat16, float>&,
                                          CudaStream);
template absl::Status WindowPartitionCuda(const WindowArgs<Float16, float>&,
                                          CudaStream);
template absl::Status WindowReverseCuda(const WindowArgs<float, float>&,
                                        CudaStream);
template absl::Status WindowReverseCuda(const WindowArgs<BFloat16, BFloat16>&,
                                        CudaStream);
template absl::Status WindowReverseCuda(const WindowArgs<Float16, Float16>&,
                                        CudaStream);
template absl::Status WindowReverseCuda(const WindowArgs<BFloat16, float>&,
                                        CudaStream);
template absl::Status WindowReverseCuda(const WindowArgs<Float16, float>&,
                                        CudaStream);

}  // namespace sfmamba::kernels
