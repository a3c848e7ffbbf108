// Every implementation's operators against the reference's, at odd sizes.
#include "tests/model/implementations.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/empty_like.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "tests/model/emulated_device.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::ops {
namespace {

constexpr double kTolerance = 2e-5;

at::Tensor Values(const std::string& key, at::IntArrayRef shape) {
  return DeterministicParameter(key, shape);
}

at::Tensor ChannelsLast(const at::Tensor& map) {
  return map.contiguous(at::MemoryFormat::ChannelsLast);
}

void ExpectNear(const at::Tensor& a, const at::Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  const double scale = b.abs().max().item<double>() + 1e-6;
  EXPECT_LE((a - b).abs().max().item<double>(), kTolerance * scale);
}

// On the CPU, and with CUDA kernels on the emulator.
class ImplementationsTest : public testing::TestWithParam<bool> {
 protected:
  const Implementation& tested() const {
    return GetParam() ? static_cast<const Implementation&>(cuda_)
                      : model::Cpu();
  }
  const Implementation& reference() const { return model::Reference(); }

  const c10::InferenceMode inference_;
  const tuning::ScanPlanChooser chooser_{{"some GPU", 132, "some build"},
                                         std::nullopt,
                                         /*deterministic=*/false};
  const CudaImplementation cuda_{
      model::EmulatedOps(), at::kCPU, {model::Precision::kFloat32, &chooser_}};
};

INSTANTIATE_TEST_SUITE_P(All, ImplementationsTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Cuda" : "Cpu";
                         });

TEST_P(ImplementationsTest, Linear) {
  for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {7, 19, 33}, {50, 80, 17}}) {
    const at::Tensor x = Values("x", {rows, in});
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kGelu}) {
      for (const bool scaled : {false, true}) {
        const LinearParameters parameters{
            {Values("weight", {out, in}), Values("bias", {out})},
            scaled ? Values("gamma", {out}) : at::Tensor(),
            epilogue};
        ExpectNear(tested().MakeLinear(parameters)->Forward(x),
                   reference().MakeLinear(parameters)->Forward(x));
      }
    }
    for (const bool bias : {false, true}) {
      const LinearParameters parameters{
          {Values("weight", {out, in}),
           bias ? Values("bias", {out}) : at::Tensor()},
          {}};
      const at::Tensor sum = Values("sum", {1, rows, out});
      Residual a(sum.clone()), b(sum.clone());
      tested().MakeLinear(parameters)->AddTo(a, x);
      reference().MakeLinear(parameters)->AddTo(b, x);
      ExpectNear(a.Sum(), b.Sum());
    }
  }
}

TEST_P(ImplementationsTest, Convolution) {
  constexpr int kIn = 6, kOut = 10, kHeight = 7, kWidth = 5;
  const at::Tensor x = Values("x", {2, kIn, kHeight, kWidth});
  const BatchNorm norm{Values("norm.weight", {kOut}),
                       Values("norm.bias", {kOut}),
                       Values("norm.running_mean", {kOut}),
                       Values("norm.running_var", {kOut}), 1e-5};
  for (const int kernel : {1, 3, 5}) {
    for (const int stride : {1, 2}) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kRelu6,
            Activation::kGeluTanh}) {
        const ConvolutionParameters parameters{
            {Values("weight", {kOut, kIn, kernel, kernel}),
             Values("bias", {kOut})},
            norm,
            activation,
            stride,
            /*groups=*/1,
            kHeight};
        ExpectNear(
            tested().MakeConvolution(parameters)->Forward(ChannelsLast(x)),
            reference().MakeConvolution(parameters)->Forward(x));
        if (stride > 1 || activation != Activation::kNone) continue;
        const at::Tensor sum = Values("sum", {2, kOut, kHeight, kWidth});
        at::Tensor a = ChannelsLast(sum).clone(), b = sum.clone();
        tested().MakeConvolution(parameters)->AddTo(a, ChannelsLast(x));
        reference().MakeConvolution(parameters)->AddTo(b, x);
        ExpectNear(a, b);
      }
    }
  }
}

TEST_P(ImplementationsTest, LayerNorm) {
  constexpr int kLength = 5, kWidth = 24;
  const LayerNormParameters parameters{Values("norm.weight", {kWidth}),
                                       Values("norm.bias", {kWidth})};
  const auto norm = tested().MakeLayerNorm(parameters);
  const auto expected = reference().MakeLayerNorm(parameters);
  const at::Tensor x = Values("x", {2, 2 * kLength, kWidth});
  for (const bool swap : {false, true}) {
    Residual a(x.clone()), b(x.clone());
    ExpectNear(norm->Forward(a, kLength, swap),
               expected->Forward(b, kLength, swap));
    ExpectNear(a.Sum(), b.Sum());
  }
  const at::Tensor map = Values("map", {2, kWidth, 3, 7});
  ExpectNear(norm->ForwardMap(ChannelsLast(map)), expected->ForwardMap(map));
}

TEST_P(ImplementationsTest, ShortConvolution) {
  constexpr int kChannels = 18, kLength = 7;
  for (const auto& [taps, left] :
       std::vector<std::pair<int, int>>{{3, 1}, {4, 3}}) {
    ShortConvolutionParameters parameters;
    parameters.left = left;
    parameters.parts = {
        {Values("x.weight", {taps, kChannels}), {}},
        {Values("z.weight", {taps, kChannels}), Values("z.bias", {kChannels})}};
    const at::Tensor x = Values("x", {2, 2 * kLength, 2 * kChannels});
    const at::Tensor a = at::empty_like(x), b = at::empty_like(x);
    const auto steps = [&](const at::Tensor& y) {
      return std::vector<ShortConvolutionOp::Step>{
          {x.narrow(2, 0, kChannels), y.narrow(2, 0, kChannels)},
          {x.narrow(2, kChannels, kChannels),
           y.narrow(2, kChannels, kChannels)}};
    };
    for (const int64_t length : {1, kLength, 2 * kLength}) {
      tested().MakeShortConvolution(parameters)->Forward(steps(a), length);
      reference().MakeShortConvolution(parameters)->Forward(steps(b), length);
      ExpectNear(a, b);
    }
  }
}

TEST_P(ImplementationsTest, ScanWithItsProjections) {
  constexpr int kChannels = 18, kRank = 3, kLength = 7;
  for (const int states : {8, 16}) {
    const ScanProjectionParameters projection{
        {Values("x_proj.weight", {kRank + 2 * states, kChannels}), {}},
        {Values("dt_proj.weight", {kChannels, kRank}), {}},
        states};
    const ScanParameters scan{-Values("A", {states, kChannels}).abs(),
                              Values("D", {kChannels}),
                              Values("dt_proj.bias", {kChannels})};
    const at::Tensor u = Values("u", {2, 2 * kLength, kChannels});
    const ScanInputs a = tested().MakeScanProjection(projection)->Forward(u);
    const ScanInputs b = reference().MakeScanProjection(projection)->Forward(u);
    ExpectNear(a.dt, b.dt);
    ExpectNear(a.B, b.B);
    ExpectNear(a.C, b.C);
    for (const int64_t length : {1, kLength, 2 * kLength}) {
      const at::Tensor y = at::empty_like(u), expected = at::empty_like(u);
      tested().MakeSelectiveScan(scan)->Forward(a, length, y);
      reference().MakeSelectiveScan(scan)->Forward(b, length, expected);
      ExpectNear(y, expected);
    }
  }
}

TEST_P(ImplementationsTest, Windows) {
  const at::Tensor x = Values("x", {2, 5, 7, 8});
  const auto windows = tested().MakeWindows({});
  const auto expected = reference().MakeWindows({});
  for (const WindowGrid& grid :
       {WindowGrid{5, 7, 5, 7}, WindowGrid{5, 7, 3, 3}, WindowGrid{5, 7, 8, 8},
        WindowGrid{5, 7, 1, 1}}) {
    const at::Tensor a = windows->Partition(x, grid, /*margin=*/0);
    ExpectNear(a, expected->Partition(x, grid, /*margin=*/0));
    ExpectNear(windows->Reverse(a, grid), x);
    ExpectNear(windows->ReverseToMap(a, grid), x.permute({0, 3, 1, 2}));

    at::Tensor wide = windows->Partition(x, grid, /*margin=*/1);
    at::Tensor wide_expected = expected->Partition(x, grid, /*margin=*/1);
    tested().FillEndsWithMean(wide);
    reference().FillEndsWithMean(wide_expected);
    ExpectNear(wide, wide_expected);
  }
}

TEST_P(ImplementationsTest, Pooling) {
  const at::Tensor map = Values("map", {2, 9, 3, 5});
  const BatchNorm norm{Values("norm.weight", {9}), Values("norm.bias", {9}),
                       Values("norm.running_mean", {9}),
                       Values("norm.running_var", {9}), 1e-5};
  for (const bool normed : {false, true}) {
    PoolingParameters parameters;
    if (normed) parameters.norm = norm;
    ExpectNear(tested().MakePooling(parameters)->Forward(ChannelsLast(map)),
               reference().MakePooling(parameters)->Forward(map));
  }
}

TEST_P(ImplementationsTest, PyramidFusion) {
  const std::vector<int> channels = {6, 10, 4};
  constexpr int kOut = 12;
  const PyramidFusionParameters parameters{
      channels,
      {Values("conv.weight", {kOut, 20, 3, 3}), {}},
      {Values("bn.weight", {kOut}), Values("bn.bias", {kOut}),
       Values("bn.running_mean", {kOut}), Values("bn.running_var", {kOut}),
       1e-5},
      /*size=*/9};
  std::vector<at::Tensor> maps, channels_last;
  for (size_t i = 0; i < channels.size(); ++i) {
    maps.push_back(
        Values("map" + std::to_string(i), {1, channels[i], 9 >> i, 11 >> i}));
    channels_last.push_back(ChannelsLast(maps.back()));
  }
  ExpectNear(tested().MakePyramidFusion(parameters)->Forward(channels_last),
             reference().MakePyramidFusion(parameters)->Forward(maps));
}

}  // namespace
}  // namespace sfmamba::ops
