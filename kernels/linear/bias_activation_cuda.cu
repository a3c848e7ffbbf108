#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device_activation.h"
#include "kernels/cuda/device_rows.h"
#include "kernels/linear/bias_activation_cuda.h"
#include "simt/simt.h"

namespace sfmamba::kernels {
namespace {

constexpr int kThreads = 256;  // The maximum number of threads in a block.
// The number of rows that a thread loads before it computes.
constexpr int kRows = 4;
constexpr int kMostBlocks = 65535;  // CUDA's limit of gridDim.y.
// Reshape() chooses a row length between these limits, in values.
constexpr int kLongestRow = 4096, kShortestRow = 256;

// The x indices of threads and blocks count groups of V channels. The y indices
// count rows. kAdd is true if args.add is set.
template <typename Function, bool kAdd, typename T, int V>
__global__ void ApplyKernel(BiasActivationArgs<T> args, Function function) {
  const int64_t c = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V;
  if (c >= args.channels) return;
  float bias[V] = {};
  if (args.bias != nullptr) LoadFloats(args.bias + c, bias);
  const int64_t step = int64_t{gridDim.y} * blockDim.y;
  for (int64_t row = blockIdx.y * blockDim.y + threadIdx.y; row < args.rows;
       row += kRows * step) {
    simt::Vector<T, V> x[kRows], add[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = row + r * step;
      if (i >= args.rows) continue;
      x[r] = simt::Load<V>(args.x + i * args.x_stride + c);
      if (kAdd) add[r] = simt::Load<V>(args.add + i * args.add_stride + c);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = row + r * step;
      if (i >= args.rows) continue;
      float y[V];
#pragma unroll
      for (int n = 0; n < V; ++n) {
        y[n] = function(simt::ToFloat(x[r][n]) + bias[n]);
        if (kAdd) y[n] += simt::ToFloat(add[r][n]);
      }
      StoreFloats(args.y + i * args.y_stride + c, y);
    }
  }
}

// Returns arguments for the same values, but with another row length (another
// `rows` and `channels`). The new length is the largest power of two from
// kShortestRow to kLongestRow that divides the number of values. Returns `args`
// unchanged if no such length exists, if there is a bias, or if an array is not
// contiguous.
template <typename T>
BiasActivationArgs<T> Reshape(BiasActivationArgs<T> args) {
  const auto dense = [&](int64_t stride) {
    return args.rows == 1 || stride == args.channels;
  };
  if (args.bias != nullptr || !dense(args.x_stride) || !dense(args.y_stride) ||
      (args.add != nullptr && !dense(args.add_stride))) {
    return args;
  }
  const int64_t total = args.rows * args.channels;
  int64_t channels = kLongestRow;
  while (channels >= kShortestRow && total % channels != 0) channels /= 2;
  if (channels < kShortestRow) return args;
  args.rows = total / channels;
  args.channels = channels;
  args.x_stride = args.y_stride = args.add_stride = channels;
  return args;
}

template <bool kAdd, int V, typename T, typename Function>
absl::Status LaunchVectors(const BiasActivationArgs<T>& args, Function function,
                           CudaStream stream) {
  const int64_t groups = args.channels / V;
  const int64_t columns = (groups + kThreads - 1) / kThreads;
  const int width = static_cast<int>((groups + columns - 1) / columns);
  const int height = static_cast<int>(
      std::min<int64_t>(args.rows, std::max(1, kThreads / width)));
  const int64_t blocks = (args.rows + height * kRows - 1) / (height * kRows);
  return simt::Launch("bias_activation", ApplyKernel<Function, kAdd, T, V>,
                      dim3(columns, std::min<int64_t>(blocks, kMostBlocks)),
                      dim3(width, height), stream, args, function);
}

template <typename T, typename Function>
absl::Status LaunchAll(const BiasActivationArgs<T>& args, Function function,
                       CudaStream stream) {
  constexpr int kWide = kWidestVector<T>;
  const bool wide = InVectors<kWide>(args.x, args.x_stride, args.channels) &&
                    InVectors<kWide>(args.y, args.y_stride, args.channels) &&
                    InVectors<kWide>(args.bias, 0, kWide) &&
                    (args.add == nullptr ||
                     InVectors<kWide>(args.add, args.add_stride, kWide));
  if (args.add != nullptr) {
    return wide ? LaunchVectors<true, kWide>(args, function, stream)
                : LaunchVectors<true, 1>(args, function, stream);
  }
  return wide ? LaunchVectors<false, kWide>(args, function, stream)
              : LaunchVectors<false, 1>(args, function, stream);
}

}  // namespace

template <typename T>
absl::Status BiasActivationCuda(const BiasActivationArgs<T>& given,
                                CudaStream stream) {
  if (given.rows == 0 || given.channels == 0) return absl::OkStatus();
  const BiasActivationArgs<T> args = Reshape(given);
  switch (args.activation) {
    case CudaActivation::kGeluErf:
      return LaunchAll(args, GeluErf(), stream);
    case CudaActivation::kGeluTanh:
      return LaunchAll(args, GeluTanh(), stream);
    default:
      return LaunchAll(args, ClampOf(args.activation), stream);
  }
}

template absl::Status BiasActivationCuda(const BiasActivationArgs<float>&,
                                         CudaStream);
template absl::Status BiasActivationCuda(const BiasActivationArgs<BFloat16>&,
                                         CudaStream);
template absl::Status BiasActivationCuda(const BiasActivationArgs<Float16>&,
                                         CudaStream);

}  // namespace sfmamba::kernels
