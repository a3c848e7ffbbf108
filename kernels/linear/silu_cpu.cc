#include <cmath>

#include "kernels/linear/silu.h"

namespace sfmamba::kernels {

template <typename T>
void SiluScalar(const T* x, int64_t count, T* y) {
  for (int64_t i = 0; i < count; ++i) {
    const float v = static_cast<float>(x[i]);
    y[i] = static_cast<T>(v / (1.0f + std::exp(-v)));
  }
}

template <typename T>
void SiluCpu(const T* x, int64_t count, T* y, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return SiluScalar(x, count, y);
    case CpuIsa::kAvx2:
      return SiluAvx2(x, count, y);
    case CpuIsa::kAvx512:
      return SiluAvx512(x, count, y);
  }
}

template void SiluCpu(const float*, int64_t, float*, CpuIsa);
template void SiluCpu(const BFloat16*, int64_t, BFloat16*, CpuIsa);

}  // namespace sfmamba::kernels
