#include <algorithm>
#include <cstdint>

#include "kernels/device_rows.h"
#include "kernels/gelu_cuda.h"
#include "simt/simt.h"

namespace sfmamba {
namespace {

constexpr int kThreads = 256;  // Of a block, at most.
// Rows that a thread loads before it computes.
constexpr int kRows = 4;
constexpr int kMostBlocks = 65535;  // Along y.
// Values that a dense array's rows may have: a power of two that divides it.
constexpr int kLongestRow = 4096, kShortestRow = 256;

constexpr float kLog2E = 1.44269504f;

// v * Phi(v), where Phi is the normal distribution. Its lower tail at -|v| is
// exp(-v^2 / 2) / 2 times a polynomial in 1 / (1 + p |v| / sqrt(2)), absolute
// error 7.5e-8. Source: Abramowitz and Stegun, 7.1.26.
struct GeluErf {
  __device__ __forceinline__ float operator()(float v) const {
    const float t = simt::Reciprocal(fmaf(fabsf(v), 0.231641888f, 1.0f));
    float tail = fmaf(t, 0.5307027145f, -0.7265760135f);
    tail = fmaf(t, tail, 0.7107068705f);
    tail = fmaf(t, tail, -0.142248368f);
    tail = fmaf(t, tail, 0.127414796f);
    tail *= t * simt::Exp2(v * v * (-0.5f * kLog2E));
    return v * (v >= 0 ? 1.0f - tail : tail);
  }
};

// v/2 * (1 + tanh(z)) = v / (1 + exp(-2z)), z = 0.79788456 (v + 0.044715 v^3).
struct GeluTanh {
  __device__ __forceinline__ float operator()(float v) const {
    constexpr float kScale = -2 * 0.797884561f * kLog2E;
    const float exponent = v * fmaf(v * v, 0.044715f * kScale, kScale);
    return v * simt::Reciprocal(1.0f + simt::Exp2(exponent));
  }
};

// Threads: x over V channels each, y over rows; blocks likewise.
template <typename Gelu, typename T, int V>
__global__ void ApplyKernel(GeluArgs<T> args) {
  const int64_t c = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V;
  if (c >= args.channels) return;
  float bias[V] = {};
  if (args.bias != nullptr) LoadFloats(args.bias + c, bias);
  const int64_t step = int64_t{gridDim.y} * blockDim.y;
  for (int64_t row = blockIdx.y * blockDim.y + threadIdx.y; row < args.rows;
       row += kRows * step) {
    simt::Vector<T, V> values[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = row + r * step;
      if (i < args.rows)
        values[r] = simt::Load<V>(args.x + i * args.x_stride + c);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = row + r * step;
      if (i >= args.rows) continue;
      float y[V];
#pragma unroll
      for (int n = 0; n < V; ++n) {
        y[n] = Gelu()(simt::ToFloat(values[r][n]) + bias[n]);
      }
      StoreFloats(args.y + i * args.y_stride + c, y);
    }
  }
}

// A dense array has no rows of its own: into rows that suit the kernel.
template <typename T>
GeluArgs<T> Reshape(GeluArgs<T> args) {
  const bool dense = args.rows == 1 || (args.x_stride == args.channels &&
                                        args.y_stride == args.channels);
  if (!dense || args.bias != nullptr) return args;
  const int64_t total = args.rows * args.channels;
  int64_t channels = kLongestRow;
  while (channels >= kShortestRow && total % channels != 0) channels /= 2;
  if (channels < kShortestRow) return args;
  return {total / channels, channels, args.x, channels, args.y, channels};
}

template <typename Gelu, int V, typename T>
absl::Status LaunchVectors(const GeluArgs<T>& args, CudaStream stream) {
  const int64_t groups = args.channels / V;
  const int64_t columns = (groups + kThreads - 1) / kThreads;
  const int width = static_cast<int>((groups + columns - 1) / columns);
  const int height = static_cast<int>(
      std::min<int64_t>(args.rows, std::max(1, kThreads / width)));
  const int64_t blocks = (args.rows + height * kRows - 1) / (height * kRows);
  return simt::Launch("gelu", ApplyKernel<Gelu, T, V>,
                      dim3(columns, std::min<int64_t>(blocks, kMostBlocks)),
                      dim3(width, height), stream, args);
}

template <typename Gelu, typename T>
absl::Status LaunchAll(const GeluArgs<T>& given, CudaStream stream) {
  if (given.rows == 0 || given.channels == 0) return absl::OkStatus();
  const GeluArgs<T> args = Reshape(given);
  constexpr int kWide = kWidestVector<T>;
  const bool wide = InVectors<kWide>(args.x, args.x_stride, args.channels) &&
                    InVectors<kWide>(args.y, args.y_stride, args.channels) &&
                    InVectors<kWide>(args.bias, 0, args.channels);
  return wide ? LaunchVectors<Gelu, kWide>(args, stream)
              : LaunchVectors<Gelu, 1>(args, stream);
}

}  // namespace

template <typename T>
absl::Status GeluErfCuda(const GeluArgs<T>& args, CudaStream stream) {
  return LaunchAll<GeluErf>(args, stream);
}

template <typename T>
absl::Status GeluTanhCuda(const GeluArgs<T>& args, CudaStream stream) {
  return LaunchAll<GeluTanh>(args, stream);
}

template absl::Status GeluErfCuda(const GeluArgs<float>&, CudaStream);
template absl::Status GeluErfCuda(const GeluArgs<BFloat16>&, CudaStream);
template absl::Status GeluErfCuda(const GeluArgs<Float16>&, CudaStream);
template absl::Status GeluTanhCuda(const GeluArgs<float>&, CudaStream);
template absl::Status GeluTanhCuda(const GeluArgs<BFloat16>&, CudaStream);
template absl::Status GeluTanhCuda(const GeluArgs<Float16>&, CudaStream);

}  // namespace sfmamba
