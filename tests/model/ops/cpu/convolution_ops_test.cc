#include <array>
#include <cstdint>

#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "ATen/core/Tensor.h"
#include "ATen/ops/conv2d.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/relu.h"
#include "ATen/ops/scaled_dot_product_attention.h"
#include "gtest/gtest.h"
#include "model/ops/cpu/ops.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/fixture.h"

namespace sfmamba::ops {
namespace {

at::Tensor Map(int64_t count, int64_t channels, int64_t height, int64_t width) {
  return DeterministicParameter("map.weight", {count, channels, height, width})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

TEST(GemmConvTest, IsLibtorchsWithTheSameBitsOnAnyThreads) {
  const int threads = at::get_num_threads();
  const at::Tensor bias = DeterministicParameter("x.bias", {40});
  const at::Tensor x = Map(2, 12, 23, 38);
  for (const int kernel : {1, 3, 5}) {
    for (const int stride : {1, 2}) {
      SCOPED_TRACE(testing::Message() << kernel << ", " << stride);
      const at::Tensor weight =
          DeterministicParameter("x.weight", {40, 12, kernel, kernel});
      const GemmConvWeights packed = PackGemmConv(weight, bias, stride);
      at::set_num_threads(1);
      const at::Tensor y = GemmConv(x, packed);
      EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
      const at::Tensor expected =
          at::conv2d(x.to(at::kDouble), weight.to(at::kDouble),
                     bias.to(at::kDouble), stride, kernel / 2);
      EXPECT_LE(RelativeError(y, expected), 1e-6);
      for (const int count : {2, 3, 16}) {
        at::set_num_threads(count);
        EXPECT_TRUE(at::equal(GemmConv(x, packed), y)) << count;
      }
    }
  }
  at::set_num_threads(threads);
}

// If there are few pixels, each thread computes some of the output channels. If
// there are many, each thread computes some of the pixels.
TEST(GemmConvTest, FewPixelsHaveTheSameBitsOnAnyThreads) {
  const int threads = at::get_num_threads();
  const at::Tensor x = Map(1, 32, 9, 9);
  const at::Tensor weight = DeterministicParameter("x.weight", {600, 32, 3, 3});
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const GemmConvWeights packed = PackGemmConv(
        weight, DeterministicParameter("x.bias", {600}), /*stride=*/2, type);
    at::set_num_threads(1);
    const at::Tensor y = GemmConv(x, packed);
    for (const int count : {2, 3}) {
      at::set_num_threads(count);
      EXPECT_TRUE(at::equal(GemmConv(x, packed), y)) << count;
    }
  }
  at::set_num_threads(threads);
}

TEST(GemmConvTest, AddsWhatItWouldWrite) {
  const at::Tensor x = Map(1, 12, 9, 10);
  const GemmConvWeights packed =
      PackGemmConv(DeterministicParameter("x.weight", {12, 12, 1, 1}), {}, 1);
  at::Tensor sum = x.clone();
  AddGemmConv(x, packed, sum);
  EXPECT_TRUE(at::equal(sum, x + GemmConv(x, packed)));
}

TEST(DepthwiseConvTest, IsLibtorchsWithTheSameBitsOnAnyThreads) {
  const int threads = at::get_num_threads();
  const at::Tensor bias = DeterministicParameter("x.bias", {72});
  const at::Tensor x = Map(2, 72, 40, 37);
  for (const int kernel : {3, 5}) {
    for (const int stride : {1, 2}) {
      SCOPED_TRACE(testing::Message() << kernel << ", " << stride);
      const at::Tensor weight =
          DeterministicParameter("x.weight", {72, 1, kernel, kernel});
      DepthwiseWeights packed = PackDepthwise(weight, bias, stride);
      packed.low = 0;
      at::set_num_threads(1);
      const at::Tensor y = DepthwiseConv(x, packed);
      EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
      const at::Tensor expected =
          at::conv2d(x.to(at::kDouble), weight.to(at::kDouble),
                     bias.to(at::kDouble), stride, kernel / 2, 1, 72)
              .relu();
      EXPECT_LE(RelativeError(y, expected), 1e-6);
      for (const int count : {2, 3, 16}) {
        at::set_num_threads(count);
        EXPECT_TRUE(at::equal(DepthwiseConv(x, packed), y)) << count;
      }
    }
  }
  at::set_num_threads(threads);
}

// The threads divide windows and heads. If there are many queries, they divide
// these, too.
TEST(AttentionTest, IsLibtorchsWithTheSameBitsOnAnyThreads) {
  const int threads = at::get_num_threads();
  for (const auto& [sequences, tokens, queries] :
       {std::array<int64_t, 3>{1, 50, 30}, {9, 50, 30}, {1, 2100, 2100}}) {
    const at::Tensor qkv =
        DeterministicParameter("qkv.weight", {3, sequences, 4, tokens, 24});
    const at::Tensor q = qkv[0].narrow(2, 0, queries), k = qkv[1], v = qkv[2];
    const at::Tensor expected = at::scaled_dot_product_attention(
        q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble));
    const auto with = [&](int count) {
      at::set_num_threads(count);
      return Attention(q, k, v);
    };
    const at::Tensor y = with(1);
    EXPECT_LE(RelativeError(y, expected), 1e-6);
    EXPECT_TRUE(y.transpose(1, 2).is_contiguous());
    for (const int count : {2, 3}) {
      EXPECT_TRUE(at::equal(with(count), y)) << count;
    }
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace sfmamba::ops
