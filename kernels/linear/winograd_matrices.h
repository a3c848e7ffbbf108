#ifndef SFMAMBA_KERNELS_LINEAR_WINOGRAD_MATRICES_H_
#define SFMAMBA_KERNELS_LINEAR_WINOGRAD_MATRICES_H_

namespace sfmamba::kernels {

// The points of F(4, 3) are 0, both signs of these, and infinity. Their
// rounding error is half of that of the paper's points 1 and 2.
constexpr double kWinograd4[] = {0.75, 1.5};
// The points of F(7, 3) are both signs of these, and infinity. Among all
// sixteenths these are nearly the points of the smallest rounding error.
constexpr double kWinograd7[] = {0.25, 0.6875, 1.125, 2};

// The matrices of Winograd's method F(m, 3) for m outputs from n = m + 2
// inputs:
//   y = A^T ((G g) . (B^T d)).
// Rows and columns are in the order of the points above: 0, then each value
// with its plus before its minus, then infinity.
// Source: Lavin and Gray (arXiv 1509.09308), 4; Cook-Toom's construction.
struct WinogradMatrices {
  static constexpr int kMost = 9;

  int m, n;
  double inputs[kMost][kMost];   // B^T, [n, n]
  double weights[kMost][3];      // G, [n, 3]
  double outputs[kMost][kMost];  // A^T, [m, n]
};

// `m` is 4 or 7.
const WinogradMatrices& WinogradMatricesOf(int m);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_WINOGRAD_MATRICES_H_
