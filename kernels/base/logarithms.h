#ifndef SFMAMBA_KERNELS_BASE_LOGARITHMS_H_
#define SFMAMBA_KERNELS_BASE_LOGARITHMS_H_

namespace sfmamba::kernels {

// Kernels compute exponentials and logarithms in base 2:
//   exp(x) = 2^(x * log2(e)), ln(x) = log2(x) * ln(2)
constexpr float kLog2E = 1.44269504f;
constexpr float kLn2 = 0.693147181f;

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_BASE_LOGARITHMS_H_
