#include "kernels/linear/winograd_matrices.h"

#include "gtest/gtest.h"

namespace sfmamba::kernels {
namespace {

TEST(WinogradMatricesTest, MakeAConvolutionOfThreeTaps) {
  const double taps[] = {3, -1, 0.5};
  for (const int m : {4, 7}) {
    const WinogradMatrices& matrices = WinogradMatricesOf(m);
    ASSERT_EQ(matrices.m, m);
    ASSERT_EQ(matrices.n, m + 2);
    for (int j = 0; j < m; ++j) {
      double sum = 0;
      for (int p = 0; p < matrices.n; ++p) {
        double weight = 0, input = 0;
        for (int k = 0; k < 3; ++k) weight += matrices.weights[p][k] * taps[k];
        for (int k = 0; k < matrices.n; ++k) {
          input += matrices.inputs[p][k] * (k * k - 2);
        }
        sum += matrices.outputs[j][p] * weight * input;
      }
      double expected = 0;
      for (int k = 0; k < 3; ++k) {
        expected += taps[k] * ((j + k) * (j + k) - 2);
      }
      EXPECT_NEAR(sum, expected, 1e-10) << "output " << j << " of " << m;
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
