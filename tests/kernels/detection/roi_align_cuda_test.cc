#include "kernels/detection/roi_align_cuda.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/fixture.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Rois = std::vector<std::vector<float>>;

struct Size {
  int height, width;
};

const std::vector<Size> kFourSizes = {{64, 80}, {32, 40}, {16, 20}, {8, 10}};

// One unit in the last place of T, relative to the value.
template <typename T>
constexpr double kRounding = 0;
template <>
constexpr double kRounding<BFloat16> = 1.0 / 256;
template <>
constexpr double kRounding<Float16> = 1.0 / 1024;

std::vector<float> Flat(const Rois& rois) {
  std::vector<float> flat;
  for (const std::vector<float>& roi : rois) {
    flat.insert(flat.end(), roi.begin(), roi.end());
  }
  return flat;
}

// The maps of a pyramid with strides 4, 8, ..., and the parameters for reading
// them.
template <typename T>
struct Pyramid {
  Pyramid(const std::vector<Size>& sizes, int channels)
      : sizes(sizes), channels(channels) {
    std::mt19937 random(1);
    for (const Size& size : sizes) {
      std::vector<T>& map = maps.emplace_back();
      for (float value :
           Normals(random, size.height * size.width * channels, 0.5f, 1)) {
        map.push_back(static_cast<T>(value));
      }
    }
  }

  int64_t bins() const { return int64_t{out_height} * out_width; }

  // Returns arguments with all fields set except the pointers. Args is
  // RoiAlignArgs or RoiAlignCudaArgs.
  template <typename Args>
  Args SizesOf(const Rois& rois) const {
    Args args{};
    args.num_levels = static_cast<int>(maps.size());
    for (size_t i = 0; i < maps.size(); ++i) {
      args.levels[i] = {nullptr, sizes[i].height, sizes[i].width,
                        first_scale / (1 << i)};
    }
    args.channels = channels;
    args.finest_scale = 56;
    args.num_rois = static_cast<int>(rois.size());
    args.out_height = out_height;
    args.out_width = out_width;
    args.sampling_ratio = sampling_ratio;
    return args;
  }

  // Returns the kernel's result [rois * bins, channels]. Each array on the
  // device begins `shift` values after an aligned address.
  Matrix<T> Align(const Rois& rois, int shift = 0) const {
    auto args = SizesOf<RoiAlignCudaArgs<T>>(rois);
    std::deque<DeviceArray<T>> device_maps;
    for (size_t i = 0; i < maps.size(); ++i) {
      std::vector<T> shifted(shift);
      shifted.insert(shifted.end(), maps[i].begin(), maps[i].end());
      args.levels[i].features =
          device_maps.emplace_back(shifted).data() + shift;
    }
    const DeviceArray<float> device_rois(Flat(rois));
    args.rois = device_rois.data();
    Matrix<T> out(rois.size() * bins(), channels, /*padding=*/0);
    const DeviceArray<T> device_out(out.rows() * channels + shift);
    args.out = device_out.data() + shift;
    EXPECT_TRUE(RoiAlignCuda(args, TestStream()).ok());
    EXPECT_TRUE(device_out.GuardsIntact());
    const std::vector<T> values = device_out.ToHost();
    std::copy(values.begin() + shift, values.end(), out.data());
    return out;
  }

  // Returns the scalar loop's result in fp32.
  Matrix<float> Reference(const Rois& rois) const {
    auto args = SizesOf<RoiAlignArgs>(rois);
    std::deque<std::vector<float>> wide;
    for (size_t i = 0; i < maps.size(); ++i) {
      std::vector<float>& map = wide.emplace_back();
      for (T value : maps[i]) map.push_back(static_cast<float>(value));
      args.levels[i].features = map.data();
    }
    const std::vector<float> flat = Flat(rois);
    args.rois = flat.data();
    Matrix<float> out(rois.size() * bins(), channels, /*padding=*/0);
    args.out = out.data();
    RoiAlignScalar(args);
    return out;
  }

  void ExpectReference(const Rois& rois, double scaled) const {
    const Matrix<T> actual = Align(rois);
    const Matrix<float> expected = Reference(rois);
    double largest = 0;
    for (int64_t i = 0; i < expected.rows() * channels; ++i) {
      largest = std::max(largest, std::abs(double{expected.data()[i]}));
    }
    for (int64_t i = 0; i < expected.rows() * channels; ++i) {
      const double want = expected.data()[i];
      const float got = static_cast<float>(actual.data()[i]);
      ASSERT_LE(std::abs(got - want),
                scaled * largest + kRounding<T> * std::abs(want))
          << "value " << i << ": got " << got << ", expected " << want;
    }
  }

  std::vector<Size> sizes;
  int channels;
  std::vector<std::vector<T>> maps;
  int out_height = 7, out_width = 7, sampling_ratio = 0;
  float first_scale = 0.25f;
};

// Returns regions for all levels of a picture. Some of them are partly outside
// the picture.
Rois RandomRois(int count, float height = 256, float width = 320) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> x(-20, width + 10), y(-20, height + 14);
  std::uniform_real_distribution<float> log_side(0, 6.5f);
  Rois rois;
  for (int i = 0; i < count; ++i) {
    const float x1 = x(random), y1 = y(random);
    rois.push_back({x1, y1, x1 + std::exp(log_side(random)),
                    y1 + std::exp(log_side(random))});
  }
  return rois;
}

template <typename T>
class RoiAlignCudaTest : public DeviceTest {};
TYPED_TEST_SUITE(RoiAlignCudaTest, ElementTypes);

TYPED_TEST(RoiAlignCudaTest, AgreesWithTheScalarLoop) {
  const Rois rois = RandomRois(20);
  for (int channels : {1, 3, 8, 17, 64, 72, 256}) {
    SCOPED_TRACE(channels);
    Pyramid<TypeParam>(kFourSizes, channels).ExpectReference(rois, 2e-6);
  }
}

TYPED_TEST(RoiAlignCudaTest, AgreesWithTheScalarLoopInAnyShape) {
  for (const auto& [height, width] : {std::pair(1, 1), {14, 14}, {3, 5}}) {
    for (int sampling_ratio : {0, 1, 3}) {
      Pyramid<TypeParam> pyramid(kFourSizes, 17);
      pyramid.out_height = height;
      pyramid.out_width = width;
      pyramid.sampling_ratio = sampling_ratio;
      pyramid.ExpectReference(RandomRois(10), 2e-6);
    }
  }
}

TYPED_TEST(RoiAlignCudaTest, ReadsTheLevelThatTheHostReads) {
  Pyramid<TypeParam> pyramid({{128, 128}, {64, 64}, {32, 32}, {16, 16}}, 1);
  for (size_t i = 0; i < pyramid.maps.size(); ++i) {
    std::fill(pyramid.maps[i].begin(), pyramid.maps[i].end(),
              static_cast<TypeParam>(static_cast<float>(i)));
  }
  pyramid.out_height = pyramid.out_width = 1;
  pyramid.sampling_ratio = 1;
  Rois rois;
  for (float side : {30.0f, 112.0f, 224.0f, 448.0f}) {
    for (int step = -20; step <= 20; ++step) {
      const float near = side * (1 + step * 0x1p-24f);
      rois.push_back({0, 0, near, near});
      rois.push_back({0, 0, near / 2, 2 * side});
    }
  }
  const Matrix<TypeParam> out = pyramid.Align(rois);
  for (size_t i = 0; i < rois.size(); ++i) {
    EXPECT_EQ(static_cast<float>(out.at(i, 0)), RoiLevel(rois[i].data(), 4, 56))
        << rois[i][2] << " x " << rois[i][3];
  }
}

// The sides of the bins are whole pixels, at a scale that is not exact in fp32.
// Rounding therefore decides how many samples a bin has.
TYPED_TEST(RoiAlignCudaTest, RoundsGridsAsTheScalarLoopDoes) {
  Pyramid<TypeParam> pyramid({{40, 50}}, 4);
  pyramid.first_scale = 1.0f / 12;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> corner(0, 200);
  Rois rois;
  for (int i = 0; i < 60; ++i) {
    const float x = corner(random), y = corner(random);
    const float side = 7.0f * 12 * (1 + i % 3);
    rois.push_back({x, y, x + side, y + side});
  }
  pyramid.ExpectReference(rois, 2e-6);
}

TYPED_TEST(RoiAlignCudaTest, ARegionsBitsDependOnItself) {
  const Pyramid<TypeParam> pyramid(kFourSizes, 24);
  const Rois rois = RandomRois(6);
  const Matrix<TypeParam> all = pyramid.Align(rois);
  EXPECT_TRUE(pyramid.Align(rois) == all);
  for (size_t i = 0; i < rois.size(); ++i) {
    const Matrix<TypeParam> alone = pyramid.Align({rois[i]});
    for (int bin = 0; bin < 49; ++bin) {
      EXPECT_TRUE(alone.RowEquals(bin, all, i * 49 + bin));
    }
  }
}

TYPED_TEST(RoiAlignCudaTest, AddressesNeedNotBeAligned) {
  const Pyramid<TypeParam> pyramid(kFourSizes, 24);
  const Rois rois = RandomRois(4);
  EXPECT_TRUE(pyramid.Align(rois, /*shift=*/1) == pyramid.Align(rois));
}

TYPED_TEST(RoiAlignCudaTest, NoRegionsGiveNothing) {
  EXPECT_EQ(Pyramid<TypeParam>(kFourSizes, 8).Align({}).rows(), 0);
}

TYPED_TEST(RoiAlignCudaTest, RegionsOfNoSizeOrOffTheMapGiveZeros) {
  const Rois rois = {{30, 30, 30, 30},         {30, 30, 30, 60},
                     {30, 30, 60, 30},         {60, 60, 30, 30},
                     {1000, 1000, 1100, 1100}, {-200, -200, -100, -100}};
  const Matrix<TypeParam> out = Pyramid<TypeParam>(kFourSizes, 8).Align(rois);
  EXPECT_TRUE(out == Matrix<TypeParam>(out.rows(), 8, 0));
}

TYPED_TEST(RoiAlignCudaTest, RegionsThatAreNotFiniteGiveZeros) {
  Pyramid<TypeParam> pyramid(kFourSizes, 8);
  const Matrix<TypeParam> zeros(1, 8, 0);
  for (int sampling_ratio : {0, 2}) {
    pyramid.sampling_ratio = sampling_ratio;
    Rois rois = {{10, 10, 100, 100}};
    const Matrix<TypeParam> alone = pyramid.Align(rois);
    for (float poison : {kNan, kInf, -kInf}) {
      for (int corner = 0; corner < 4; ++corner) {
        rois.push_back(rois[0]);
        rois.back()[corner] = poison;
      }
    }
    const Matrix<TypeParam> out = pyramid.Align(rois);
    for (int64_t i = 0; i < out.rows(); ++i) {
      EXPECT_TRUE(i < 49 ? out.RowEquals(i, alone, i)
                         : out.RowEquals(i, zeros, 0));
    }
  }
}

TYPED_TEST(RoiAlignCudaTest, PoisonReachesOnlyRegionsThatReadIt) {
  Pyramid<TypeParam> pyramid({{64, 80}}, 8);
  const Rois rois = {{0, 0, 40, 40}, {200, 200, 240, 240}};
  const Matrix<TypeParam> clean = pyramid.Align(rois);
  pyramid.maps[0][(5 * 80 + 5) * 8] = static_cast<TypeParam>(kNan);
  const Matrix<TypeParam> out = pyramid.Align(rois);
  bool reached = false;
  for (int bin = 0; bin < 49; ++bin) {
    reached = reached || !out.RowIsFinite(bin);
    EXPECT_TRUE(out.RowEquals(49 + bin, clean, 49 + bin));
  }
  EXPECT_TRUE(reached);
}

// A bin may have millions of samples, but only a few lie on the map.
TYPED_TEST(RoiAlignCudaTest, HugeRegionsEndAndStayOnTheMap) {
  Pyramid<TypeParam> pyramid(kFourSizes, 5);
  const Rois rois = {{-500, -700, 900, 800},      {-1e5f, -1e5f, 1e5f, 1e5f},
                     {-1e9f, -1e9f, 1e9f, 1e9f},  {0, 0, 1e30f, 1e30f},
                     {-3e38f, -3e38f, 3e38f, 10}, {10, 10, 12, 1e20f},
                     {1e20f, 1e20f, 2e20f, 2e20f}};
  for (int sampling_ratio : {0, 2}) {
    pyramid.sampling_ratio = sampling_ratio;
    pyramid.ExpectReference(rois, 1e-5);
  }
}

TYPED_TEST(RoiAlignCudaTest, ASinglePixelIsEnough) {
  const Pyramid<TypeParam> pyramid({{1, 1}}, 3);
  pyramid.ExpectReference({{0, 0, 4, 4}, {-3, -3, 90, 90}}, 2e-6);
}

TYPED_TEST(RoiAlignCudaTest, AgreesWithTheScalarLoopOfADetectorsSize) {
  if (Emulated()) GTEST_SKIP() << "too large for the emulator";
  const Pyramid<TypeParam> pyramid({{200, 336}, {100, 168}, {50, 84}, {25, 42}},
                                   256);
  pyramid.ExpectReference(RandomRois(1000, 800, 1333), 2e-6);
}

class RoiAlignCudaFixtureTest : public DeviceTest {};

// Returns image `image` of maps [N, C, H, W] as a pyramid.
Pyramid<float> ImageOf(const std::vector<at::Tensor>& maps, int64_t image,
                       float first_scale) {
  Pyramid<float> pyramid({}, static_cast<int>(maps[0].size(1)));
  pyramid.first_scale = first_scale;
  for (const at::Tensor& map : maps) {
    const at::Tensor last = map[image].permute({1, 2, 0}).contiguous();
    pyramid.sizes.push_back(
        {static_cast<int>(last.size(0)), static_cast<int>(last.size(1))});
    const float* values = last.const_data_ptr<float>();
    pyramid.maps.emplace_back(values, values + last.numel());
  }
  return pyramid;
}

// Aligns the fixture's regions [n, 5] and expects `expected` [n, C, height,
// width].
void ExpectFixture(const std::vector<at::Tensor>& maps, float first_scale,
                   const at::Tensor& rois, const at::Tensor& expected,
                   int sampling_ratio) {
  at::Tensor out = expected.permute({0, 2, 3, 1}).contiguous().clone();
  for (int64_t image = 0; image < maps[0].size(0); ++image) {
    Pyramid<float> pyramid = ImageOf(maps, image, first_scale);
    pyramid.out_height = static_cast<int>(expected.size(2));
    pyramid.out_width = static_cast<int>(expected.size(3));
    pyramid.sampling_ratio = sampling_ratio;
    Rois wanted;
    std::vector<int64_t> places;
    for (int64_t i = 0; i < expected.size(0); ++i) {
      const at::Tensor row = rois[i].contiguous();
      const float* roi = row.const_data_ptr<float>();
      if (static_cast<int64_t>(roi[0]) != image) continue;
      wanted.emplace_back(roi + 1, roi + 5);
      places.push_back(i);
    }
    const Matrix<float> aligned = pyramid.Align(wanted);
    const int64_t values = pyramid.bins() * pyramid.channels;
    for (size_t i = 0; i < places.size(); ++i) {
      std::copy_n(aligned.data() + i * values, values,
                  out.data_ptr<float>() + places[i] * values);
    }
  }
  EXPECT_LE(RelativeError(out.permute({0, 3, 1, 2}), expected), 1e-4);
}

TEST_F(RoiAlignCudaFixtureTest, AgreesWithTheFixture) {
  const Fixture fixture("roi_align");
  for (const auto& [name, sampling_ratio] :
       {std::pair("out7", 0), std::pair("out14", 0), std::pair("out7_sr2", 2),
        std::pair("out_3x5", 0)}) {
    SCOPED_TRACE(name);
    ExpectFixture({fixture["feat"]}, 0.125f, fixture["rois"], fixture[name],
                  sampling_ratio);
  }
}

TEST_F(RoiAlignCudaFixtureTest, ChoosesTheFixturesLevels) {
  const Fixture fixture("roi_extractor");
  std::vector<at::Tensor> maps;
  for (const char* level : {"0", "1", "2", "3"}) {
    maps.push_back(fixture[std::string("extract.feat.") + level]);
  }
  for (const char* name : {"extract.out7", "extract.out14"}) {
    ExpectFixture(maps, 0.25f, fixture["extract.rois"], fixture[name], 0);
  }
}

}  // namespace
}  // namespace sfmamba::kernels
