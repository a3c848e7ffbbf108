#include "kernels/linear/winograd_matrices.h"

#include <vector>

namespace sfmamba::kernels {
namespace {

// Writes the coefficients of the product of x - q over all points q except
// number `left_out`. row[k] becomes the coefficient of x^k.
void Expand(const std::vector<double>& points, int left_out, double* row) {
  std::vector<double> product = {1};
  for (int j = 0; j < static_cast<int>(points.size()); ++j) {
    if (j == left_out) continue;
    product.push_back(0);
    for (int k = static_cast<int>(product.size()) - 1; k >= 0; --k) {
      product[k] = (k > 0 ? product[k - 1] : 0) - points[j] * product[k];
    }
  }
  for (double coefficient : product) *row++ = coefficient;
}

// Returns the matrices for `points` and infinity, which `points` does not
// contain.
WinogradMatrices Make(const std::vector<double>& points) {
  WinogradMatrices all{};
  all.n = static_cast<int>(points.size()) + 1;
  all.m = all.n - 2;
  const int last = all.n - 1;  // The row of the point infinity.
  for (int i = 0; i < last; ++i) {
    Expand(points, i, all.inputs[i]);
    double scale = 1;
    for (int j = 0; j < last; ++j) {
      if (j != i) scale /= points[i] - points[j];
    }
    double power = 1;
    for (int k = 0; k < 3; ++k, power *= points[i]) {
      all.weights[i][k] = scale * power;
    }
    power = 1;
    for (int k = 0; k < all.m; ++k, power *= points[i]) {
      all.outputs[k][i] = power;
    }
  }
  Expand(points, last, all.inputs[last]);
  all.weights[last][2] = 1;
  all.outputs[all.m - 1][last] = 1;
  return all;
}

}  // namespace

const WinogradMatrices& WinogradMatricesOf(int m) {
  static const auto& four = *new WinogradMatrices(
      Make({0, kWinograd4[0], -kWinograd4[0], kWinograd4[1], -kWinograd4[1]}));
  static const auto& seven = *new WinogradMatrices(
      Make({kWinograd7[0], -kWinograd7[0], kWinograd7[1], -kWinograd7[1],
            kWinograd7[2], -kWinograd7[2], kWinograd7[3], -kWinograd7[3]}));
  return m == 4 ? four : seven;
}

}  // namespace sfmamba::kernels
