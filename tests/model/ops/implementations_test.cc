// Compares every implementation's operators with the reference's, at odd sizes.
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/zeros.h"
#include "absl/synchronization/mutex.h"
#include "model/ops/implementation.h"
#include "tests/model/against_reference.h"
#include "tests/testing/planes.h"

namespace sfmamba::ops {
namespace {

// Number of images, height and width.
const std::vector<std::array<int64_t, 3>> kMaps = {
    {1, 1, 1}, {1, 9, 2}, {3, 7, 5}};

at::Tensor Values(const std::string& key, at::IntArrayRef shape) {
  return DeterministicParameter(key, shape);
}

BatchNorm NormOf(int channels) {
  return {Values("norm.weight", {channels}), Values("norm.bias", {channels}),
          Values("norm.running_mean", {channels}),
          Values("norm.running_var", {channels}), 1e-5};
}

class ImplementationsTest : public model::AgainstReference {
 protected:
  static void ExpectEqualConvolutions(const ConvolutionParameters& parameters) {
    const auto convolution = tested().MakeConvolution(parameters);
    const auto expected = reference().MakeConvolution(parameters);
    for (const auto& [images, height, width] : kMaps) {
      // The values are large enough to reach ReLU6's limit of 6.
      const at::Tensor x =
          model::RandomValues("x", {images, parameters.in(), height, width}) *
          5;
      ExpectNear(convolution->Forward(Map(x)), expected->Forward(x));
      if (parameters.stride > 1 || parameters.groups > 1 ||
          parameters.activation != Activation::kNone) {
        continue;
      }
      const at::Tensor sum =
          model::RandomValues("sum", {images, parameters.out(), height, width});
      at::Tensor a = Map(sum.clone()), b = sum.clone();
      convolution->AddTo(a, Map(x));
      expected->AddTo(b, x);
      ExpectNear(a, b);
    }
  }
  // Compares windows and maps in NHWC order. They must be exact copies of the
  // input.
  static void ExpectEqualWindows(const at::Tensor& x, const WindowGrid& grid) {
    const auto windows = tested().MakeWindows({});
    const auto expected = reference().MakeWindows({});
    const at::Tensor own = x.to(GetParam().type);
    const at::Tensor a = windows->Partition(own, grid, WindowEnds::kNone);
    EXPECT_EQ(a.scalar_type(), GetParam().stream);
    ExpectNear(a, expected->Partition(x, grid, WindowEnds::kNone));
    ExpectNear(windows->Reverse(a, grid), x);
    ExpectNear(windows->ReverseToMap(a, grid), x.permute({0, 3, 1, 2}));

    at::Tensor wide = windows->Partition(own, grid, WindowEnds::kUnset);
    tested().FillEndsWithMean(wide);
    ExpectNear(wide, expected->Partition(x, grid, WindowEnds::kMean));
    EXPECT_TRUE(windows->Partition(own, grid, WindowEnds::kMean).equal(wide));
  }
};

INSTANTIATE_TEST_SUITE_P(All, ImplementationsTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

TEST_P(ImplementationsTest, Linear) {
  for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {7, 19, 33}, {50, 80, 17}}) {
    const at::Tensor x = model::RandomValues("x", {rows, in});
    for (const Epilogue epilogue : {Epilogue::kNone, Epilogue::kGelu}) {
      for (const bool scaled : {false, true}) {
        const LinearParameters parameters{
            {Values("weight", {out, in}), Values("bias", {out})},
            scaled ? Values("gamma_1", {out}) : at::Tensor(),
            epilogue,
            /*is_output=*/false,
            /*feeds_products=*/scaled};
        ExpectNear(tested().MakeLinear(parameters)->Forward(Normed(x)),
                   reference().MakeLinear(parameters)->Forward(x));
      }
    }
    for (const bool bias : {false, true}) {
      const LinearParameters parameters{
          {Values("weight", {out, in}),
           bias ? Values("bias", {out}) : at::Tensor()},
          {}};
      const at::Tensor sum = model::RandomValues("sum", {1, rows, out});
      Residual a = Stream(sum), b(sum.clone());
      tested().MakeLinear(parameters)->AddTo(a, Normed(x));
      reference().MakeLinear(parameters)->AddTo(b, x);
      ExpectNear(a.Sum(), b.Sum());
    }
  }
}

TEST_P(ImplementationsTest, Convolution) {
  constexpr int kIn = 6, kOut = 11;
  for (const int kernel : {1, 3, 5}) {
    for (const int stride : {1, 2}) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kRelu6,
            Activation::kGeluTanh}) {
        ExpectEqualConvolutions({{Values("weight", {kOut, kIn, kernel, kernel}),
                                  Values("bias", {kOut})},
                                 NormOf(kOut),
                                 activation,
                                 stride,
                                 /*groups=*/1,
                                 /*input_size=*/7});
      }
    }
  }
}

TEST_P(ImplementationsTest, ConvolutionOfGroups) {
  constexpr int kChannels = 18;
  for (const int stride : {1, 2}) {
    ExpectEqualConvolutions({{Values("weight", {kChannels, 6, 3, 3}), {}},
                             NormOf(kChannels),
                             Activation::kRelu6,
                             stride,
                             /*groups=*/3,
                             /*input_size=*/7});
  }
}

TEST_P(ImplementationsTest, DepthwiseConvolution) {
  for (const int channels : {18, 24}) {
    for (const int kernel : {1, 3, 5, 7, 9}) {
      for (const int stride : {1, 2}) {
        for (const Activation activation :
             {Activation::kNone, Activation::kRelu, Activation::kRelu6,
              Activation::kGeluTanh}) {
          ExpectEqualConvolutions(
              {{Values("weight", {channels, 1, kernel, kernel}),
                Values("bias", {channels})},
               NormOf(channels),
               activation,
               stride,
               /*groups=*/channels,
               /*input_size=*/7});
        }
      }
    }
  }
}

TEST_P(ImplementationsTest, StemOfValues) {
  for (const int out : {5, 16}) {
    const ConvolutionParameters parameters{
        {Values("weight", {out, 3, 3, 3}), {}},
        NormOf(out),
        Activation::kRelu,
        /*stride=*/2,
        /*groups=*/1,
        /*input_size=*/9};
    for (const auto& [images, height, width] : kMaps) {
      const at::Tensor x = model::RandomValues("x", {images, 3, height, width});
      ExpectNear(tested().MakeStem(parameters)->Forward(Map(x)),
                 reference().MakeStem(parameters)->Forward(x));
      ExpectNear(tested().Values(Map(x)), reference().Values(x));
    }
  }
}

// Images of two sizes are padded to a larger size.
TEST_P(ImplementationsTest, StemOfPixels) {
  if (!GetParam().reads_pixels) GTEST_SKIP() << "It reads values only.";
  constexpr int kHeight = 9, kWidth = 7;
  std::vector<uint8_t> rgb(2 * kHeight * kWidth * 3);
  for (size_t i = 0; i < rgb.size(); ++i) rgb[i] = 37 * i % 256;
  const PixelBatch pixels{{{rgb.data(), 9, 7}, {rgb.data() + 9 * 7 * 3, 5, 6}},
                          kHeight,
                          kWidth,
                          {0.1f, 0.2f, 0.3f},
                          {0.2f, 0.3f, 0.4f}};
  const ImageBatch images(pixels, at::kCPU, GetParam().type);
  // `mixed_pixels` has the same images, but the second one is planar.
  const uint8_t* const second = pixels.images[1].rgb;
  const std::vector<uint8_t> planes = PlanesOf({second, second + 5 * 6 * 3});
  const std::vector<uint8_t> planar = {0, 1};
  PixelBatch mixed_pixels = pixels;
  mixed_pixels.images[1].rgb = planes.data();
  mixed_pixels.planar = planar.data();
  const ImageBatch mixed(mixed_pixels, at::kCPU, GetParam().type);

  const at::Tensor values = at::zeros({2, 3, kHeight, kWidth}, at::kFloat);
  for (int i = 0; i < 2; ++i) {
    const ImagePixels& image = pixels.images[i];
    for (int y = 0; y < image.height; ++y) {
      for (int x = 0; x < image.width; ++x) {
        for (int c = 0; c < 3; ++c) {
          const float value = image.rgb[(y * image.width + x) * 3 + c] / 255.0f;
          values[i][c][y][x] = (value - pixels.mean[c]) / pixels.std[c];
        }
      }
    }
  }
  ExpectNear(tested().Values(images), values);
  EXPECT_TRUE(at::equal(tested().Values(mixed), tested().Values(images)));
  for (const int out : {5, 16}) {
    const ConvolutionParameters parameters{
        {Values("weight", {out, 3, 3, 3}), {}},
        NormOf(out),
        Activation::kRelu6,
        /*stride=*/2,
        /*groups=*/1,
        kHeight};
    const auto stem = tested().MakeStem(parameters);
    ExpectNear(stem->Forward(images),
               reference().MakeStem(parameters)->Forward(values));
    EXPECT_TRUE(at::equal(stem->Forward(mixed), stem->Forward(images)));
  }
}

TEST_P(ImplementationsTest, LayerNorm) {
  for (const int width : {19, 24}) {
    const LayerNormParameters parameters{Values("norm.weight", {width}),
                                         Values("norm.bias", {width})};
    const auto norm = tested().MakeLayerNorm(parameters);
    const auto expected = reference().MakeLayerNorm(parameters);
    for (const int64_t length : {1, 5}) {
      const at::Tensor x = model::RandomValues("x", {3, 2 * length, width});
      for (const bool swap : {false, true}) {
        Residual a = Stream(x), b(x.clone());
        const at::Tensor y = expected->Forward(b, length, swap);
        ExpectNear(norm->Forward(a, length, swap), y);
        ExpectNear(a.Sum(), b.Sum());
      }
    }
    const at::Tensor map = model::RandomValues("map", {3, width, 3, 7});
    ExpectNear(norm->ForwardMap(Map(map)), expected->ForwardMap(map));
  }
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
    const at::Tensor x =
        model::RandomValues("x", {3, 2 * kLength, 2 * kChannels});
    const at::Tensor own = x.to(GetParam().type);
    const at::Tensor a = at::empty_like(own), b = at::empty_like(x);
    const auto steps = [&](const at::Tensor& x, const at::Tensor& y) {
      return std::vector<ShortConvolutionOp::Step>{
          {x.narrow(2, 0, kChannels), y.narrow(2, 0, kChannels)},
          {x.narrow(2, kChannels, kChannels),
           y.narrow(2, kChannels, kChannels)}};
    };
    for (const int64_t length : {1, kLength, 2 * kLength}) {
      tested().MakeShortConvolution(parameters)->Forward(steps(own, a), length);
      reference()
          .MakeShortConvolution(parameters)
          ->Forward(steps(x, b), length);
      ExpectNear(a, b);
    }
  }
}

TEST_P(ImplementationsTest, ScanWithItsProjections) {
  constexpr int kChannels = 18, kLength = 7;
  for (const int states : {8, 16}) {
    // An implementation may compute x_proj and dt_proj with one combined matrix
    // product. With these few channels, CUDA does so for both ranks.
    for (const int rank : {1, 9}) {
      const ScanProjectionParameters projection{
          {Values("x_proj.weight", {rank + 2 * states, kChannels}), {}},
          {Values("dt_proj.weight", {kChannels, rank}), {}},
          states};
      const ScanParameters scan{-Values("A", {states, kChannels}).abs(),
                                Values("mixer.D", {kChannels}),
                                Values("dt_proj.bias", {kChannels})};
      const at::Tensor u =
          model::RandomValues("u", {2, 2 * kLength, kChannels});
      const ScanInputs a = tested()
                               .MakeScanProjection(projection)
                               ->Forward(u.to(GetParam().type));
      const ScanInputs b =
          reference().MakeScanProjection(projection)->Forward(u);
      ExpectNear(a.dt, b.dt);
      ExpectNear(a.B, b.B);
      ExpectNear(a.C, b.C);
      for (const int64_t length : {1, kLength, 2 * kLength}) {
        const at::Tensor y = at::empty_like(a.u), expected = at::empty_like(u);
        tested().MakeSelectiveScan(scan)->Forward(a, length, y);
        reference().MakeSelectiveScan(scan)->Forward(b, length, expected);
        ExpectNear(y, expected);
      }
    }
  }
}

TEST_P(ImplementationsTest, CrossScan) {
  constexpr int kRank = 2;
  for (const int channels : {5, 36}) {
    const CrossScanParameters parameters{
        Values("x_proj_weight", {4, kRank + 2, channels}),
        Values("dt_projs_weight", {4, channels, kRank}),
        -Values("A", {4, channels}).abs(),
        Values("D", {4, channels, 1}).squeeze(2),
        Values("dt_projs_bias", {4, channels}),
        {Values("weight", {channels}), Values("bias", {channels})}};
    const auto scan = tested().MakeCrossScan(parameters);
    const auto expected = reference().MakeCrossScan(parameters);
    for (const auto& [images, height, width] : kMaps) {
      const at::Tensor u =
          model::RandomValues("u", {images, height, width, channels});
      ExpectNear(scan->Forward(u.to(GetParam().type)), expected->Forward(u));
    }
  }
}

// The map has the size of a detector's first stage at 800 x 1344 pixels.
TEST_P(ImplementationsTest, CrossScanOfALargeMap) {
  if (GetParam().products != at::kFloat) {
    GTEST_SKIP() << "half a million norms of few channels magnify roundings";
  }
  constexpr int kRank = 1, kChannels = 8;
  const CrossScanParameters parameters{
      Values("x_proj_weight", {4, kRank + 2, kChannels}),
      Values("dt_projs_weight", {4, kChannels, kRank}),
      -Values("A", {4, kChannels}).abs(),
      Values("D", {4, kChannels, 1}).squeeze(2),
      Values("dt_projs_bias", {4, kChannels}),
      {Values("weight", {kChannels}), Values("bias", {kChannels})}};
  const at::Tensor u = model::RandomValues("u", {1, 200, 336, kChannels});
  // The result is stored, because the reference takes seconds.
  static const auto& expected =
      *new at::Tensor(reference().MakeCrossScan(parameters)->Forward(u));
  ExpectNear(tested().MakeCrossScan(parameters)->Forward(u.to(GetParam().type)),
             expected);
}

TEST_P(ImplementationsTest, Windows) {
  for (const int channels : {5, 8}) {
    const at::Tensor x = model::RandomValues("x", {3, 5, 7, channels});
    for (const WindowGrid& grid :
         {WindowGrid{5, 7, 5, 7}, WindowGrid{5, 7, 3, 3},
          WindowGrid{5, 7, 8, 8}, WindowGrid{5, 7, 1, 1}}) {
      ExpectEqualWindows(x, grid);
    }
    ExpectEqualWindows(model::RandomValues("x", {1, 1, 1, channels}),
                       {1, 1, 2, 2});
  }
}

TEST_P(ImplementationsTest, Attention) {
  for (const auto& [sequences, heads, tokens, queries, d] :
       std::vector<std::array<int64_t, 5>>{
           {1, 1, 1, 1, 1}, {3, 2, 7, 7, 5}, {1, 3, 17, 4, 12}}) {
    // The shape is [3, sequences, heads, tokens, d]. The tensor has the memory
    // layout of a matrix product's result.
    const at::Tensor qkv =
        model::RandomValues("qkv", {sequences, tokens, 3, heads, d})
            .permute({2, 0, 3, 1, 4});
    const at::Tensor own = qkv.to(GetParam().type);
    ExpectNear(
        tested().Attention(own[0].narrow(2, 0, queries), own[1], own[2]),
        reference().Attention(qkv[0].narrow(2, 0, queries), qkv[1], qkv[2]));
  }
}

TEST_P(ImplementationsTest, Pooling) {
  constexpr int kChannels = 9;
  for (const auto& [images, height, width] : kMaps) {
    const at::Tensor map =
        model::RandomValues("map", {images, kChannels, height, width});
    for (const bool normed : {false, true}) {
      PoolingParameters parameters;
      if (normed) parameters.norm = NormOf(kChannels);
      ExpectNear(tested().MakePooling(parameters)->Forward(Map(map)),
                 reference().MakePooling(parameters)->Forward(map));
    }
  }
}

TEST_P(ImplementationsTest, PyramidFusion) {
  const std::vector<int> channels = {6, 10, 4};
  constexpr int kOut = 11;
  const PyramidFusionParameters parameters{
      channels,
      {Values("conv.weight", {kOut, 20, 3, 3}), {}},
      NormOf(kOut),
      /*size=*/9};
  for (const int64_t images : {1, 3}) {
    std::vector<at::Tensor> maps, own;
    for (size_t i = 0; i < channels.size(); ++i) {
      maps.push_back(model::RandomValues(
          "map" + std::to_string(i), {images, channels[i], 9 >> i, 11 >> i}));
      own.push_back(Map(maps.back()));
    }
    ExpectNear(tested().MakePyramidFusion(parameters)->Forward(own),
               reference().MakePyramidFusion(parameters)->Forward(maps));
  }
}

TEST_P(ImplementationsTest, PartsCoverEachItemOnce) {
  for (const int64_t count : {1, 3, 7}) {
    absl::Mutex mu;  // Guards `calls`.
    std::vector<int> calls(count);
    tested().ForEachPart(count, /*size=*/3, [&](int64_t first, int64_t items) {
      absl::MutexLock lock(&mu);
      for (int64_t i = first; i < first + items; ++i) ++calls.at(i);
    });
    EXPECT_EQ(calls, std::vector<int>(count, 1));
  }
}

}  // namespace
}  // namespace sfmamba::ops
