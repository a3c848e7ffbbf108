#ifndef SFMAMBA_KERNELS_LINEAR_WINOGRAD_MATRICES_H_
#define SFMAMBA_KERNELS_LINEAR_WINOGRAD_MATRICES_H_

namespace sfmamba::kernels {

// The interpolation points of F(4, 3) are 0, infinity, and q and -q for each of
// these values q. The rounding error is half of the error with the values 1 and
// 2, which the paper uses.
constexpr double kWinograd4[] = {0.75, 1.5};
// The interpolation points of F(7, 3) are infinity, and q and -q for each of
// these values q. Among all values q that are multiples of 1/16, these have
// nearly the smallest rounding error.
constexpr double kWinograd7[] = {0.25, 0.6875, 1.125, 2};

// The matrices of Winograd's method F(m, 3). It computes m outputs y from the
// weights g and n inputs d, where n = m + 2:
//   y = A^T ((G g) . (B^T d))
// Each interpolation point has a row of B^T, a row of G and a column of A^T.
// The order is 0 (only if m is 4), then q and -q for each value q above, then
// infinity.
// Source: Lavin and Gray (arXiv 1509.09308), section 4, and the Cook-Toom
// construction.
struct WinogradMatrices {
  static constexpr int kMost = 9;

  int m, n;
  double inputs[kMost][kMost];   // B^T, [n, n]
  double weights[kMost][3];      // G, [n, 3]
  double outputs[kMost][kMost];  // A^T, [m, n]
};

// Returns the matrices of F(m, 3). m must be 4 or 7.
const WinogradMatrices& WinogradMatricesOf(int m);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_LINEAR_WINOGRAD_MATRICES_H_
