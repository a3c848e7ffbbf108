#include <cmath>

#include "kernels/linear/gelu.h"

namespace sfmamba::kernels {
namespace {

float GeluErf(float v) { return 0.5f * v * (1.0f + std::erf(v * 0.70710678f)); }

float GeluTanh(float v) {
  const float inner = 0.79788456f * (v + 0.044715f * v * v * v);
  return 0.5f * v * (1.0f + std::tanh(inner));
}

// Computes y = gelu(x + bias), one value at a time.
template <typename T, typename F>
void Apply(const GeluArgs<T>& args, F gelu) {
  for (int64_t i = 0; i < args.rows; ++i) {
    for (int64_t c = 0; c < args.channels; ++c) {
      const float bias = args.bias != nullptr ? args.bias[c] : 0.0f;
      const float v = static_cast<float>(args.x[i * args.x_stride + c]) + bias;
      args.y[i * args.y_stride + c] = static_cast<T>(gelu(v));
    }
  }
}

}  // namespace

template <typename T>
void GeluErfScalar(const GeluArgs<T>& args) {
  Apply(args, GeluErf);
}

template <typename T>
void GeluTanhScalar(const GeluArgs<T>& args) {
  Apply(args, GeluTanh);
}

template <typename T>
void GeluErfCpu(const GeluArgs<T>& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return GeluErfScalar(args);
    case CpuIsa::kAvx2:
      return GeluErfAvx2(args);
    case CpuIsa::kAvx512:
      return GeluErfAvx512(args);
  }
}

template <typename T>
void GeluTanhCpu(const GeluArgs<T>& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return GeluTanhScalar(args);
    case CpuIsa::kAvx2:
      return GeluTanhAvx2(args);
    case CpuIsa::kAvx512:
      return GeluTanhAvx512(args);
  }
}

template void GeluErfCpu(const GeluArgs<float>&, CpuIsa);
template void GeluErfCpu(const GeluArgs<BFloat16>&, CpuIsa);
template void GeluTanhCpu(const GeluArgs<float>&, CpuIsa);
template void GeluTanhCpu(const GeluArgs<BFloat16>&, CpuIsa);

}  // namespace sfmamba::kernels
