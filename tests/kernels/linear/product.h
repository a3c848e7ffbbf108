#ifndef SFMAMBA_TESTS_KERNELS_LINEAR_PRODUCT_H_
#define SFMAMBA_TESTS_KERNELS_LINEAR_PRODUCT_H_

#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/linear/packed_gemm.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {

// A product of random rows with random weights of type W. These are the same in
// each run.
template <typename W>
struct Product {
  Product(int64_t rows, int in, int out) : x(rows, in), weights(out, in, 0) {
    std::mt19937 random(1);
    x.FillNormal(random, 0.3f, 1);
    weights.FillNormal(random, 0, 1);
    bias = Normals(random, out, 0, 1);
  }

  int64_t rows() const { return x.rows(); }
  int in() const { return x.columns(); }
  int out() const { return static_cast<int>(weights.rows()); }

  std::vector<W> Packed(CpuIsa isa) const {
    std::vector<W> packed(PackedWeightsSize<W>(in(), out(), isa));
    PackWeights(weights.data(), in(), out(), packed.data(), isa);
    return packed;
  }

  // Returns all arguments except y.
  GemmArgs<W> Args(const std::vector<W>& packed) const {
    GemmArgs<W> args{};
    args.rows = rows();
    args.in = in();
    args.out = out();
    args.x = x.data();
    args.x_stride = x.stride();
    args.weights = packed.data();
    if (with_bias) args.bias = bias.data();
    return args;
  }

  Matrix<float> Run(CpuIsa isa) const {
    Matrix<float> y(rows(), out());
    const std::vector<W> packed = Packed(isa);
    GemmArgs<W> args = Args(packed);
    args.y = y.data();
    args.y_stride = y.stride();
    PackedGemmCpu(args, isa);
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  Matrix<double> Reference() const {
    Matrix<double> y(rows(), out());
    for (int64_t i = 0; i < rows(); ++i) {
      for (int o = 0; o < out(); ++o) {
        double sum = with_bias ? bias[o] : 0.0;
        for (int k = 0; k < in(); ++k) {
          sum += double{Rounded(x.at(i, k))} * Rounded(weights.at(o, k));
        }
        y.at(i, o) = sum;
      }
    }
    return y;
  }

  // Returns the value that the product reads, which may be rounded.
  static float Rounded(float value) {
    return std::is_same_v<W, BFloat16> ? static_cast<float>(BFloat16(value))
                                       : value;
  }

  Matrix<float> x, weights;
  std::vector<float> bias;
  bool with_bias = true;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_LINEAR_PRODUCT_H_
