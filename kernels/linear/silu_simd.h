// SiLU as a template over a vector type V. Files that are compiled for one
// instruction set include this header and choose V.
#ifndef SFMAMBA_KERNELS_LINEAR_SILU_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_SILU_SIMD_H_

#include "kernels/linear/silu.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

struct Silu {
  template <typename V>
  V operator()(V v) const {
    return OverOnePlusExp2(v, v * V::Set(-kLog2E));
  }
};

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_SILU_SIMD_H_
