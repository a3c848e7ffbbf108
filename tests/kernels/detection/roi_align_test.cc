#include "kernels/detection/roi_align.h"

#include <cmath>
#include <limits>
#include <vector>

#include "ATen/ops/empty.h"
#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/fixture.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Rois = std::vector<std::vector<float>>;

// The maps of a feature pyramid with strides 4, 8, ... , and the sizes with
// which its regions are aligned. Guards of NaN surround each map.
struct Pyramid {
  struct Size {
    int height, width;
  };

  Pyramid(const std::vector<Size>& sizes, int channels)
      : sizes(sizes), channels(channels) {
    for (const Size& size : sizes) {
      maps.emplace_back(size.height * size.width, channels, /*padding=*/0);
    }
  }

  void FillNormal() {
    std::mt19937 random(1);
    for (Matrix<float>& map : maps) map.FillNormal(random, 0.5f, 1);
  }

  // Returns the kernel's result, with a row per bin.
  Matrix<float> Align(const Rois& rois, CpuIsa isa) const {
    std::vector<float> flat;
    for (const std::vector<float>& roi : rois) {
      flat.insert(flat.end(), roi.begin(), roi.end());
    }
    RoiAlignArgs args{};
    args.num_levels = static_cast<int>(maps.size());
    for (size_t i = 0; i < maps.size(); ++i) {
      args.levels[i] = {maps[i].data(), sizes[i].height, sizes[i].width,
                        0.25f / (1 << i)};
    }
    args.channels = channels;
    args.finest_scale = 56;
    args.num_rois = static_cast<int>(rois.size());
    args.rois = flat.data();
    args.out_height = out_height;
    args.out_width = out_width;
    args.sampling_ratio = sampling_ratio;
    Matrix<float> out(rois.size() * out_height * out_width, channels,
                      /*padding=*/0);
    args.out = out.data();
    RoiAlignCpu(args, isa);
    EXPECT_TRUE(out.GuardsIntact());
    return out;
  }

  std::vector<Size> sizes;
  int channels;
  std::vector<Matrix<float>> maps;
  int out_height = 7, out_width = 7, sampling_ratio = 0;
};

// Returns regions for all levels of a 256 x 320 picture. Some of them are
// partly outside the picture.
Rois RandomRois(int count) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> x(-20, 330), y(-20, 270);
  std::uniform_real_distribution<float> log_side(0, 6.5f);
  Rois rois;
  for (int i = 0; i < count; ++i) {
    const float x1 = x(random), y1 = y(random);
    rois.push_back({x1, y1, x1 + std::exp(log_side(random)),
                    y1 + std::exp(log_side(random))});
  }
  return rois;
}

const std::vector<Pyramid::Size> kFourSizes = {
    {64, 80}, {32, 40}, {16, 20}, {8, 10}};

class RoiAlignTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, RoiAlignTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

// Returns the map of image `image` as a level. `channels_last` holds the maps
// of all images, [N, H, W, C].
RoiAlignArgs::Level LevelOf(const at::Tensor& channels_last, int64_t image,
                            float scale) {
  const at::Tensor map = channels_last.select(0, image);
  return {map.const_data_ptr<float>(), static_cast<int>(map.size(0)),
          static_cast<int>(map.size(1)), scale};
}

// Aligns the fixture's regions and expects `expected` [n, C, height, width].
// `rois` [n, 5] has the index of the image and x1, y1, x2, y2 for each region.
// The first of `maps` has the scale `first_scale`. Each next map has half the
// scale.
void ExpectFixture(const std::vector<at::Tensor>& maps, float first_scale,
                   const at::Tensor& rois, const at::Tensor& expected,
                   int sampling_ratio, CpuIsa isa) {
  std::vector<at::Tensor> channels_last;
  for (const at::Tensor& map : maps) {
    channels_last.push_back(map.permute({0, 2, 3, 1}).contiguous());
  }
  const at::Tensor out = at::empty(
      {expected.size(0), expected.size(2), expected.size(3), expected.size(1)});
  for (int64_t i = 0; i < expected.size(0); ++i) {
    const at::Tensor roi = rois.select(0, i).contiguous();
    const float* values = roi.const_data_ptr<float>();
    RoiAlignArgs args{};
    args.num_levels = static_cast<int>(maps.size());
    for (size_t k = 0; k < maps.size(); ++k) {
      args.levels[k] = LevelOf(channels_last[k], static_cast<int64_t>(*values),
                               first_scale / (1 << k));
    }
    args.channels = static_cast<int>(out.size(3));
    args.finest_scale = 56;
    args.num_rois = 1;
    args.rois = values + 1;
    args.out_height = static_cast<int>(out.size(1));
    args.out_width = static_cast<int>(out.size(2));
    args.sampling_ratio = sampling_ratio;
    args.out = out.select(0, i).data_ptr<float>();
    RoiAlignCpu(args, isa);
  }
  EXPECT_LE(RelativeError(out.permute({0, 3, 1, 2}), expected), 1e-4);
}

TEST_P(RoiAlignTest, AgreesWithTheFixture) {
  const Fixture fixture("roi_align");
  for (const auto& [name, sampling_ratio] :
       {std::pair("out7", 0), std::pair("out14", 0), std::pair("out7_sr2", 2),
        std::pair("out_3x5", 0)}) {
    SCOPED_TRACE(name);
    ExpectFixture({fixture["feat"]}, 0.125f, fixture["rois"], fixture[name],
                  sampling_ratio, GetParam());
  }
}

TEST_P(RoiAlignTest, ChoosesTheFixturesLevels) {
  const Fixture fixture("roi_extractor");
  std::vector<at::Tensor> maps;
  for (const char* level : {"0", "1", "2", "3"}) {
    maps.push_back(fixture[std::string("extract.feat.") + level]);
  }
  for (const char* name : {"extract.out7", "extract.out14"}) {
    ExpectFixture(maps, 0.25f, fixture["extract.rois"], fixture[name], 0,
                  GetParam());
  }
}

TEST(RoiLevelTest, AgreesWithTheFixture) {
  const Fixture fixture("roi_extractor");
  const at::Tensor rois = fixture["map.rois"], levels = fixture["map.levels"];
  for (int64_t i = 0; i < levels.size(0); ++i) {
    EXPECT_EQ(RoiLevel(rois.const_data_ptr<float>() + 5 * i + 1, 4, 56),
              levels.const_data_ptr<int64_t>()[i])
        << i;
  }
}

TEST(RoiLevelTest, IsOneOfTheLevelsWhateverTheRegion) {
  for (float side : {-5.0f, 0.0f, 1e-30f, 1e30f, kInf, -kInf, kNan}) {
    for (float other : {-5.0f, 0.0f, 1e30f, kInf, kNan}) {
      const float roi[] = {0, 0, side, other};
      const int level = RoiLevel(roi, 3, 56);
      EXPECT_GE(level, 0);
      EXPECT_LE(level, 2);
    }
  }
}

TEST_P(RoiAlignTest, AgreesWithTheScalarLoop) {
  const Rois rois = RandomRois(60);
  for (int channels : {1, 3, 5, 8, 17, 64, 72, 256}) {
    Pyramid pyramid(kFourSizes, channels);
    pyramid.FillNormal();
    ExpectClose(pyramid.Align(rois, GetParam()),
                ToDouble(pyramid.Align(rois, CpuIsa::kScalar)), 1e-6);
  }
}

TEST_P(RoiAlignTest, AgreesWithTheScalarLoopInAnyShape) {
  for (const auto& [height, width] : {std::pair(1, 1), {14, 14}, {3, 5}}) {
    for (int sampling_ratio : {0, 1, 3}) {
      Pyramid pyramid(kFourSizes, 17);
      pyramid.FillNormal();
      pyramid.out_height = height;
      pyramid.out_width = width;
      pyramid.sampling_ratio = sampling_ratio;
      const Rois rois = RandomRois(20);
      ExpectClose(pyramid.Align(rois, GetParam()),
                  ToDouble(pyramid.Align(rois, CpuIsa::kScalar)), 1e-6);
    }
  }
}

// The mean of a linear map over a bin is its value at the bin's centre.
TEST_P(RoiAlignTest, ReadsALinearMapAtTheBinsCentres) {
  Pyramid pyramid({{40, 50}}, 2);
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 50; ++x) {
      pyramid.maps[0].at(y * 50 + x, 0) = x;
      pyramid.maps[0].at(y * 50 + x, 1) = y;
    }
  }
  const Matrix<float> out = pyramid.Align({{20, 10, 104, 66}}, GetParam());
  for (int row = 0; row < 7; ++row) {
    for (int column = 0; column < 7; ++column) {
      // The region of 84 x 56 pixels covers 21 x 14 pixels of the map. Each bin
      // covers 3 x 2 of them.
      EXPECT_NEAR(out.at(row * 7 + column, 0), 5 - 0.5 + 3 * column + 1.5,
                  1e-4);
      EXPECT_NEAR(out.at(row * 7 + column, 1), 2.5 - 0.5 + 2 * row + 1, 1e-4);
    }
  }
}

TEST_P(RoiAlignTest, NoRegionsGiveNothing) {
  Pyramid pyramid(kFourSizes, 8);
  EXPECT_EQ(pyramid.Align({}, GetParam()).rows(), 0);
}

TEST_P(RoiAlignTest, RegionsOfNoSizeOrOffTheMapGiveZeros) {
  Pyramid pyramid(kFourSizes, 8);
  pyramid.FillNormal();
  const Rois rois = {{30, 30, 30, 30},         {30, 30, 30, 60},
                     {30, 30, 60, 30},         {60, 60, 30, 30},
                     {1000, 1000, 1100, 1100}, {-200, -200, -100, -100}};
  const Matrix<float> out = pyramid.Align(rois, GetParam());
  EXPECT_TRUE(out == Matrix<float>(out.rows(), 8, 0));
}

TEST_P(RoiAlignTest, RegionsThatAreNotFiniteGiveZeros) {
  Pyramid pyramid(kFourSizes, 8);
  pyramid.FillNormal();
  for (int sampling_ratio : {0, 2}) {
    pyramid.sampling_ratio = sampling_ratio;
    for (float poison : {kNan, kInf, -kInf}) {
      for (int corner = 0; corner < 4; ++corner) {
        std::vector<float> roi = {10, 10, 100, 100};
        roi[corner] = poison;
        const std::vector<float> clean = {10, 10, 100, 100};
        const Matrix<float> out = pyramid.Align({clean, roi}, GetParam());
        const Matrix<float> alone = pyramid.Align({clean}, GetParam());
        const Matrix<float> zeros(1, 8, 0);
        for (int bin = 0; bin < 49; ++bin) {
          EXPECT_TRUE(out.RowEquals(bin, alone, bin));
          EXPECT_TRUE(out.RowEquals(49 + bin, zeros, 0));
        }
      }
    }
  }
}

// A bin may have millions of samples, but only a few of them lie on the map.
// The kernel must not visit the others.
TEST_P(RoiAlignTest, HugeRegionsEndAndStayOnTheMap) {
  Pyramid pyramid(kFourSizes, 5);
  pyramid.FillNormal();
  for (int sampling_ratio : {0, 2}) {
    pyramid.sampling_ratio = sampling_ratio;
    const Rois rois = {{-500, -700, 900, 800},      {-1e5f, -1e5f, 1e5f, 1e5f},
                       {-1e9f, -1e9f, 1e9f, 1e9f},  {0, 0, 1e30f, 1e30f},
                       {-3e38f, -3e38f, 3e38f, 10}, {10, 10, 12, 1e20f},
                       {1e20f, 1e20f, 2e20f, 2e20f}};
    const Matrix<float> out = pyramid.Align(rois, GetParam());
    for (int64_t i = 0; i < out.rows(); ++i) EXPECT_TRUE(out.RowIsFinite(i));
    ExpectClose(out, ToDouble(pyramid.Align(rois, CpuIsa::kScalar)), 1e-5);
  }
}

// The middle one of the 7 x 7 bins covers the whole map and a large area around
// it.
TEST_P(RoiAlignTest, ARegionFarLargerThanTheMapCountsItsSamples) {
  Pyramid pyramid({{16, 16}}, 1);
  for (int i = 0; i < 256; ++i) pyramid.maps[0].at(i, 0) = 1;
  // A bin covers 1600 x 1600 map pixels and has a sample for each. Only 18 x 18
  // samples are not 0: the map's 16 x 16 pixels and a margin of one pixel.
  const float half = 3.5f * 1600 * 4;
  const Matrix<float> out =
      pyramid.Align({{32 - half, 32 - half, 32 + half, 32 + half}}, GetParam());
  EXPECT_NEAR(out.at(24, 0), 18.0 * 18.0 / (1600.0 * 1600.0), 1e-6);
  EXPECT_EQ(out.at(23, 0), 0);
}

TEST_P(RoiAlignTest, ASinglePixelIsEnough) {
  Pyramid pyramid({{1, 1}}, 3);
  pyramid.FillNormal();
  const Matrix<float> out = pyramid.Align({{0, 0, 4, 4}}, GetParam());
  for (int bin = 0; bin < 49; ++bin) {
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(out.at(bin, c), pyramid.maps[0].at(0, c), 1e-6);
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
