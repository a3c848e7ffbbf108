#include <limits>
#include <string>
#include <utility>

#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "ATen/core/Tensor.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full.h"
#include "ATen/ops/mm.h"
#include "gtest/gtest.h"
#include "kernels/linear/gelu.h"
#include "kernels/simd/cpu_features.h"
#include "model/ops/cpu/ops.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/fixture.h"

namespace sfmamba::ops {
namespace {

at::Tensor Values(const char* name, int64_t rows, int64_t columns) {
  return DeterministicParameter(std::string(name) + ".weight", {rows, columns});
}

at::Tensor Multiply(const at::Tensor& x, const at::Tensor& weight,
                    const at::Tensor& bias) {
  const at::Tensor y = at::empty({x.size(0), weight.size(0)});
  ops::Gemm(x, ops::PackGemm(weight), bias, GemmOutput::kSet, y);
  return y;
}

// If there are few rows and many outputs (columns of the result), the threads
// divide the outputs. Otherwise they divide the rows.
TEST(ProductTest, HasTheSameBitsOnAnyThreads) {
  const int threads = at::get_num_threads();
  for (const auto& [rows, out] : {std::pair(300, 20), {51, 1000}, {3, 70}}) {
    const at::Tensor x = Values("x", rows, 640), w = Values("w", out, 640);
    const at::Tensor bias = Values("bias", 1, out).view({out});
    at::set_num_threads(1);
    const at::Tensor y = Multiply(x, w, bias);
    const at::Tensor expected =
        at::mm(x.to(at::kDouble), w.t().to(at::kDouble)).add_(bias);
    EXPECT_LE(RelativeError(y, expected), 1e-6);
    for (int count : {2, 3, 16}) {
      at::set_num_threads(count);
      EXPECT_TRUE(at::equal(Multiply(x, w, bias), y)) << count;
    }
  }
  at::set_num_threads(threads);
}

TEST(ProductTest, ReadsAndWritesRowsOfWiderTensors) {
  const at::Tensor x = Values("x", 20, 64), w = Values("w", 48, 32);
  const at::Tensor half = x.narrow(1, 8, 32);
  const at::Tensor expected = Multiply(half.contiguous(), w, {});
  const at::Tensor wide = at::empty({20, 96});
  ops::Gemm(half, ops::PackGemm(w), {}, GemmOutput::kSet,
            wide.narrow(1, 16, 48));
  EXPECT_TRUE(at::equal(wide.narrow(1, 16, 48), expected));
  // x may also be stored column by column. The values of a row are then not
  // adjacent in memory.
  EXPECT_TRUE(at::equal(Multiply(half.t().contiguous().t(), w, {}), expected));
}

TEST(ProductTest, Adds) {
  const at::Tensor x = Values("x", 20, 32), w = Values("w", 48, 32);
  const at::Tensor before = Values("y", 20, 48), y = before.clone();
  ops::Gemm(x, ops::PackGemm(w), {}, GemmOutput::kAdd, y);
  EXPECT_TRUE(at::equal(y, before + Multiply(x, w, {})));
}

// The input may be rounded to bf16 by the caller or by Gemm(). The result may
// be rounded by Gemm() or afterwards by the caller. The bits must be the same
// in all cases.
TEST(ProductTest, TakesAndReturnsBf16WithTheBitsOfFp32) {
  const at::Tensor x = Values("x", 51, 640), w = Values("w", 100, 640);
  const at::Tensor bias = Values("bias", 1, 100).view({100});
  const PackedWeights weights = PackGemm(w, at::kBFloat16);
  const at::Tensor expected = at::empty({51, 100});
  Gemm(x, weights, bias, GemmOutput::kSet, expected);
  for (const at::Tensor& rows : {x, x.to(at::kBFloat16)}) {
    const at::Tensor y = at::empty({51, 100});
    Gemm(rows, weights, bias, GemmOutput::kSet, y);
    EXPECT_TRUE(at::equal(y, expected));
    const at::Tensor rounded = at::empty({51, 100}, at::kBFloat16);
    Gemm(rows, weights, bias, GemmOutput::kSet, rounded);
    EXPECT_TRUE(at::equal(rounded, expected.to(at::kBFloat16)));
  }
}

// Applies GELU to contiguous sums in place.
void GeluErf(const at::Tensor& sums) {
  float* values = sums.data_ptr<float>();
  const int64_t count = sums.numel();
  kernels::GeluErfCpu<float>({1, count, values, count, values, count});
}

TEST(ProductTest, GeluHasTheSameBitsOnAnyThreads) {
  const int threads = at::get_num_threads();
  const at::Tensor x = Values("x", 51, 640), w = Values("w", 1000, 640);
  const PackedWeights weights = PackGemm(w);
  const at::Tensor sums = at::empty({51, 1000});
  Gemm(x, weights, {}, GemmOutput::kSet, sums);
  GeluErf(sums);
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    const at::Tensor y = at::empty({51, 1000});
    Gemm(x, weights, {}, GemmOutput::kGeluErf, y);
    EXPECT_TRUE(at::equal(y, sums)) << count;
  }
  at::set_num_threads(threads);
}

TEST(ProductTest, GeluInBf16HasTheSameBitsOnAnyThreads) {
  const int threads = at::get_num_threads();
  const at::Tensor x = Values("x", 51, 640), w = Values("w", 1000, 640);
  const PackedWeights weights = PackGemm(w, at::kBFloat16);
  const at::Tensor sums = at::empty({51, 1000});
  Gemm(x, weights, {}, GemmOutput::kSet, sums);
  GeluErf(sums);
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    const at::Tensor y = at::empty({51, 1000}, at::kBFloat16);
    Gemm(x, weights, {}, GemmOutput::kGeluErf, y);
    EXPECT_LE(RelativeError(y.to(at::kFloat), sums.to(at::kDouble)), 4e-3);
    if (kernels::HasAvx512Bf16()) {
      EXPECT_TRUE(at::equal(y, sums.to(at::kBFloat16))) << count;
    }
  }
  at::set_num_threads(threads);
}

TEST(ProductTest, AnInfiniteWeightGivesInfinities) {
  const at::Tensor x = at::full({3, 64}, 1.0f), w = Values("w", 70, 64).clone();
  w[5][7] = std::numeric_limits<float>::infinity();
  const at::Tensor y = at::empty({3, 70});
  Gemm(x, PackGemm(w), {}, GemmOutput::kSet, y);
  EXPECT_TRUE(at::equal(y.isposinf(), w.isposinf().any(1).expand({3, 70})));
  EXPECT_FALSE(y.isnan().any().item<bool>());
}

TEST(ProductTest, RefusesTypesThatItDoesNotCompute) {
  const at::Tensor x = Values("x", 4, 32), w = Values("w", 48, 32);
  const at::Tensor fp32 = at::empty({4, 48});
  const at::Tensor bf16 = at::empty({4, 48}, at::kBFloat16);
  const PackedWeights weights = PackGemm(w, at::kBFloat16);
  EXPECT_THROW(Gemm(x, PackGemm(w), {}, GemmOutput::kSet, bf16), c10::Error);
  EXPECT_THROW(
      Gemm(x.to(at::kBFloat16), PackGemm(w), {}, GemmOutput::kSet, fp32),
      c10::Error);
  EXPECT_THROW(Gemm(x, weights, {}, GemmOutput::kAdd, bf16), c10::Error);
}

TEST(ProductTest, RefusesSizesThatDoNotFit) {
  EXPECT_THROW(Multiply(Values("x", 20, 31), Values("w", 48, 32), {}),
               c10::Error);
}

}  // namespace
}  // namespace sfmamba::ops
