// GELU as templates over a vector type V. Files that are compiled for one
// instruction set include this header and choose V.
#ifndef SFMAMBA_KERNELS_LINEAR_GELU_SIMD_H_
#define SFMAMBA_KERNELS_LINEAR_GELU_SIMD_H_

#include "kernels/linear/gelu.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// GELU is v * Phi(v), where Phi is the standard normal distribution function.
// Phi(v) - 1/2 is odd, so it is computed as v times a polynomial in v^2. The
// polynomial is fitted (minimax, weighted by v) for |v| <= kGeluErfRange,
// beyond which Phi is constant to within fp32. The absolute error is 3e-7
// before rounding.
constexpr float kGeluErfRange = 5.4f;
// The polynomial's coefficients in w = 2 v^2 / kGeluErfRange^2 - 1, which is in
// [-1, 1].
constexpr float kGeluErf[] = {0.130928119f,    -0.0653276918f,  0.0484985975f,
                              -0.0392195587f,  0.0321395992f,   -0.0256216276f,
                              0.0194577936f,   -0.0144772676f,  0.0103465295f,
                              -0.00570294798f, 0.00237649224f,  -0.00213094924f,
                              0.00201875376f,  -0.000693265327f};

struct GeluErf {
  template <typename V>
  V operator()(V v) const {
    const V limit = V::Set(kGeluErfRange);
    const V x = Max(Negate(limit), Min(limit, v));
    const V w = Fma(x * x, V::Set(2.0f / (kGeluErfRange * kGeluErfRange)),
                    V::Set(-1.0f));
    const V phi = Fma(Polynomial(kGeluErf, w), x, V::Set(0.5f));
    // Below the range, phi must be exactly 0, because a large |v| would
    // multiply any error of phi.
    return v * Select(LessEqual(v, Negate(limit)), V::Set(0.0f), phi);
  }
};

// Computes v/2 * (1 + tanh(z)) in the equivalent form v / (1 + exp(-2z)), where
// z = 0.797884561 * (v + 0.044715 v^3).
struct GeluTanh {
  template <typename V>
  V operator()(V v) const {
    constexpr float kScale = -2 * 0.797884561f * kLog2E;
    const V cubic = Fma(v * v, V::Set(0.044715f * kScale), V::Set(kScale));
    return OverOnePlusExp2(v, v * cubic);
  }
};

template <typename V, typename F, typename T>
void Apply(const GeluArgs<T>& args, F gelu) {
  for (int64_t i = 0; i < args.rows; ++i) {
    const T* x = args.x + i * args.x_stride;
    T* y = args.y + i * args.y_stride;
    if (args.bias == nullptr) {
      ForEachVector<V>(args.channels, [&](int64_t c, int lanes) {
        StoreLanes(gelu(LoadLanes<V>(x + c, lanes)), y + c, lanes);
      });
      continue;
    }
    ForEachVector<V>(args.channels, [&](int64_t c, int lanes) {
      const V bias = LoadLanes<V>(args.bias + c, lanes);
      StoreLanes(gelu(LoadLanes<V>(x + c, lanes) + bias), y + c, lanes);
    });
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_GELU_SIMD_H_
