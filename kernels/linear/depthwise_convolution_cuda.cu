#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_activation.h"
#include "kernels/cuda/device_rows.h"
#include "kernels/linear/depthwise_convolution_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

// A thread computes kRun adjacent pixels of a row (a run). The pixels share the
// loaded weights and most of the loaded inputs.
constexpr int kRun = 4;
// A block of threads computes a tile of a map, for some of the channels. The
// tile is nearly square, so that few inputs are read by several blocks. For 128
// channels it is 8 pixels wide and 4 high. For fewer channels it is higher.
constexpr int kThreads = 256;  // The maximum number of threads in a block.
// The maximum number of threads in the x, y and z direction of a block.
constexpr int kMostGroups = 32, kMostRuns = 2, kMostRows = 16;
constexpr int kMostMaps = 65535;  // CUDA's limit of gridDim.z.

// The arguments, and values that are computed from them.
template <typename T>
struct Parameters {
  DepthwiseConvolutionCudaArgs<T> args;
  int height, width;  // The size of y's maps.
  Clamp activation;
};

// Adds the products of one row of the kernel to the sums of a run. `from`
// points to the input that the first weight of the row multiplies for the first
// pixel of the run. This input is in column `left`, which may be outside the
// map. `weight` points to that first weight. Both pointers start at the
// thread's first channel.
template <int kKernel, int kStride, int V, typename T>
__device__ __forceinline__ void AddTaps(const T* from, const float* weight,
                                        int channels, int left, int width,
                                        float (&sums)[kRun][V]) {
  constexpr int kColumns = (kRun - 1) * kStride + kKernel;
  float x[kColumns][V], w[kKernel][V];
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    if (left + i >= 0 && left + i < width) {
      LoadFloats(from + i * channels, x[i]);
    } else {
#pragma unroll
      for (int n = 0; n < V; ++n) x[i][n] = 0;
    }
  }
#pragma unroll
  for (int t = 0; t < kKernel; ++t) {
    LoadFloats(weight + t * channels, w[t]);
  }
#pragma unroll
  for (int t = 0; t < kKernel; ++t) {
#pragma unroll
    for (int p = 0; p < kRun; ++p) {
#pragma unroll
      for (int n = 0; n < V; ++n) {
        sums[p][n] = fmaf(w[t][n], x[p * kStride + t][n], sums[p][n]);
      }
    }
  }
}

// Computes channels [c, c + V) of the run of pixels that begins at pixel (y, x)
// of map `map`.
template <int kKernel, int kStride, int V, typename T>
__device__ __forceinline__ void ConvolveRun(const Parameters<T>& parameters,
                                            int64_t map, int y, int x, int c) {
  const DepthwiseConvolutionCudaArgs<T>& args = parameters.args;
  float bias[V] = {}, sums[kRun][V];
  if (args.bias != nullptr) LoadFloats(args.bias + c, bias);
#pragma unroll
  for (int p = 0; p < kRun; ++p) {
#pragma unroll
    for (int n = 0; n < V; ++n) sums[p][n] = bias[n];
  }
  const int top = y * kStride - kKernel / 2, left = x * kStride - kKernel / 2;
#pragma unroll 1
  for (int r = 0; r < kKernel; ++r) {
    if (top + r < 0 || top + r >= args.height) continue;
    const int64_t from = (map * args.height + top + r) * args.width + left;
    AddTaps<kKernel, kStride>(
        args.x + from * args.channels + c,
        args.weight + int64_t{r} * kKernel * args.channels + c, args.channels,
        left, args.width, sums);
  }
  const int64_t first = (map * parameters.height + y) * parameters.width + x;
#pragma unroll
  for (int p = 0; p < kRun; ++p) {
    if (x + p >= parameters.width) continue;
    float values[V];
#pragma unroll
    for (int n = 0; n < V; ++n) values[n] = parameters.activation(sums[p][n]);
    StoreFloats(args.y + (first + p) * args.channels + c, values);
  }
}

// threadIdx.x counts groups of V channels, threadIdx.y counts runs of a row,
// and threadIdx.z counts rows. blockIdx.x counts the tiles of a map, of which
// `across` are side by side. blockIdx.y counts blocks of channels, and
// blockIdx.z counts maps.
template <typename T, int kKernel, int kStride, int V>
__global__ void __launch_bounds__(kThreads, 2)
    ConvolveKernel(Parameters<T> parameters, int across) {
  const int c = (blockIdx.y * blockDim.x + threadIdx.x) * V;
  const int x = (blockIdx.x % across * blockDim.y + threadIdx.y) * kRun;
  const int y = blockIdx.x / across * blockDim.z + threadIdx.z;
  if (c >= parameters.args.channels || x >= parameters.width ||
      y >= parameters.height) {
    return;
  }
  for (int64_t map = blockIdx.z; map < parameters.args.count;
       map += gridDim.z) {
    ConvolveRun<kKernel, kStride, V>(parameters, map, y, x, c);
  }
}

// Returns a / b, rounded up.
int Parts(int a, int b) { return (a + b - 1) / b; }

template <int kKernel, int kStride, int V, typename T>
absl::Status LaunchVectors(const Parameters<T>& parameters, CudaStream stream) {
  const int groups = parameters.args.channels / V;
  const int columns = Parts(groups, kMostGroups);
  const int runs = Parts(parameters.width, kRun);
  dim3 threads(Parts(groups, columns), std::min(runs, kMostRuns));
  const int rows = kThreads / (threads.x * threads.y);
  threads.z = std::min({parameters.height, rows, kMostRows});
  const int across = Parts(runs, threads.y);
  const int down = Parts(parameters.height, threads.z);
  return simt::Launch(
      "depthwise_convolution", ConvolveKernel<T, kKernel, kStride, V>,
      dim3(across * down, columns, std::min(parameters.args.count, kMostMaps)),
      threads, stream, parameters, across);
}

template <int kKernel, int kStride, typename T>
absl::Status LaunchTaps(const Parameters<T>& parameters, CudaStream stream) {
  constexpr int V = 4;
  const DepthwiseConvolutionCudaArgs<T>& args = parameters.args;
  const bool wide = InVectors<V>(args.x, args.channels, args.channels) &&
                    InVectors<V>(args.y, 0, V) &&
                    InVectors<V>(args.weight, 0, V) &&
                    InVectors<V>(args.bias, 0, V);
  return wide ? LaunchVectors<kKernel, kStride, V>(parameters, stream)
              : LaunchVectors<kKernel, kStride, 1>(parameters, stream);
}

template <int kKernel, typename T>
absl::Status LaunchKernel(const Parameters<T>& parameters, CudaStream stream) {
  return parameters.args.stride == 1
             ? LaunchTaps<kKernel, 1>(parameters, stream)
             : LaunchTaps<kKernel, 2>(parameters, stream);
}

template <typename T>
absl::Status Check(const DepthwiseConvolutionCudaArgs<T>& args) {
  if ((args.kernel != 3 && args.kernel != 5 && args.kernel != 7) ||
      (args.stride != 1 && args.stride != 2)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "depthwise_convolution: expected a kernel of 3, 5 or 7 and a stride of "
        "1 or 2, got ",
        args.kernel, " and ", args.stride));
  }
  if (args.activation == CudaActivation::kGeluErf ||
      args.activation == CudaActivation::kGeluTanh) {
    return absl::InvalidArgumentError(
        "depthwise_convolution: expected no activation, ReLU or ReLU6, got "
        "GELU");
  }
  return absl::OkStatus();
}

}  // namespace

template <typename T>
absl::Status DepthwiseConvolutionCuda(
    const DepthwiseConvolutionCudaArgs<T>& args, CudaStream stream) {
  const absl::Status checked = Check(args);
  if (!checked.ok() || args.count == 0 || args.height == 0 || args.width == 0 ||
      args.channels == 0) {
    return checked;
  }
  const Parameters<T> parameters = {
      args, (args.height + args.stride - 1) / args.stride,
      (args.width + args.stride - 1) / args.stride, ClampOf(args.activation)};
  switch (args.kernel) {
    case 3:
      return LaunchKernel<3>(parameters, stream);
    case 5:
      return LaunchKernel<5>(parameters, stream);
    default:
      return LaunchKernel<7>(parameters, stream);
  }
}

template absl::Status DepthwiseConvolutionCuda(
    const DepthwiseConvolutionCudaArgs<float>&, CudaStream);
template absl::Status DepthwiseConvolutionCuda(
    const DepthwiseConvolutionCudaArgs<BFloat16>&, CudaStream);
template absl::Status DepthwiseConvolutionCuda(
    const DepthwiseConvolutionCudaArgs<Float16>&, CudaStream);

}  // namespace sfmamba::kernels
