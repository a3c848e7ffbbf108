#include "kernels/segmentation/segmentation_argmax_cuda.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/segmentation/segmentation_argmax.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/fixture.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Size {
  int height, width;

  int pixels() const { return height * width; }
};

struct Map {
  std::vector<uint16_t> labels;
  std::vector<uint8_t> confidence;
  std::vector<int64_t> areas;
};

// Logits [height, width, classes], and the sizes of the model's input and of
// the picture.
template <typename T>
struct Problem {
  Problem(Size size, int classes, Size input, Size out)
      : size(size),
        input(input),
        out(out),
        row_end(out.height),
        logits(size.pixels(), classes, 0) {
    std::mt19937 random(1);
    logits.FillNormal(random, 0, 2);
  }

  int classes() const { return logits.columns(); }

  void Fill(int k, float value) {
    for (int p = 0; p < size.pixels(); ++p) {
      logits.at(p, k) = static_cast<T>(value);
    }
  }

  // Runs the kernel for the rows [row_begin, row_end) and returns its results.
  // Before the run, all bits of labels and confidences are set, and all areas
  // are 1000. The kernel must not change the labels and confidences of other
  // rows. It adds its counts to the areas.
  Map Run(bool confidence = true, bool areas = true) const {
    const DeviceArray<T> device_logits(std::vector<T>(
        logits.data(), logits.data() + logits.rows() * classes()));
    const DeviceArray<uint16_t> labels(
        std::vector<uint16_t>(out.pixels(), 0xffff));
    const DeviceArray<uint8_t> confidences(
        std::vector<uint8_t>(out.pixels(), 0xff));
    const DeviceArray<int64_t> device_areas(
        std::vector<int64_t>(classes(), 1000));
    const DeviceArray<uint8_t> scratch(
        SegmentationArgmaxCudaScratchBytes(out.height, out.width));
    SegmentationArgmaxCudaArgs<T> args{};
    args.logits = device_logits.data();
    args.height = size.height;
    args.width = size.width;
    args.classes = classes();
    args.input_height = input.height;
    args.input_width = input.width;
    args.out_height = out.height;
    args.out_width = out.width;
    args.row_begin = row_begin;
    args.row_end = row_end;
    args.labels = labels.data();
    args.confidence = confidence ? confidences.data() : nullptr;
    args.areas = areas ? device_areas.data() : nullptr;
    args.scratch = scratch.data();
    EXPECT_TRUE(SegmentationArgmaxCuda(args, TestStream()).ok());
    EXPECT_TRUE(labels.GuardsIntact());
    EXPECT_TRUE(confidences.GuardsIntact());
    EXPECT_TRUE(device_areas.GuardsIntact());
    EXPECT_TRUE(scratch.GuardsIntact());
    return {labels.ToHost(), confidences.ToHost(), device_areas.ToHost()};
  }

  // Returns the scalar loop's result for the same logits in fp32.
  Map Reference() const {
    Map map = {std::vector<uint16_t>(out.pixels(), 0xffff),
               std::vector<uint8_t>(out.pixels(), 0xff),
               std::vector<int64_t>(classes(), 1000)};
    Matrix<float> wide(logits.rows(), classes(), 0);
    for (int64_t i = 0; i < logits.rows() * classes(); ++i) {
      wide.data()[i] = static_cast<float>(logits.data()[i]);
    }
    const SegmentationArgmaxArgs args = {
        wide.data(),     size.height, size.width,        classes(),
        input.height,    input.width, out.height,        out.width,
        row_begin,       row_end,     map.labels.data(), map.confidence.data(),
        map.areas.data()};
    SegmentationArgmaxCpu(args, CpuIsa::kScalar);
    return map;
  }

  void ExpectReference() const {
    const Map map = Run();
    const Map expected = Reference();
    EXPECT_EQ(map.labels, expected.labels);
    EXPECT_EQ(map.areas, expected.areas);
    int furthest = 0;  // Rounding may make a difference of 1.
    for (int p = 0; p < out.pixels(); ++p) {
      furthest = std::max(furthest,
                          std::abs(map.confidence[p] - expected.confidence[p]));
    }
    EXPECT_LE(furthest, 1);
  }

  Size size, input, out;
  int row_begin = 0, row_end;
  Matrix<T> logits;
};

template <typename T>
class SegmentationArgmaxCudaTest : public DeviceTest {};
TYPED_TEST_SUITE(SegmentationArgmaxCudaTest, ElementTypes);

// The sizes of each case are the sizes of the logits, of the model's input and
// of the picture. In some cases, the picture is four times as large as the
// logits, in others smaller than the logits. In one case, the model's input is
// smaller than the logits. In some cases, the logits have only one pixel.
TYPED_TEST(SegmentationArgmaxCudaTest, AgreesWithTheScalarLoop) {
  const std::vector<std::vector<Size>> sizes = {
      {{9, 13}, {36, 52}, {36, 52}}, {{9, 13}, {36, 52}, {29, 61}},
      {{9, 13}, {9, 13}, {9, 13}},   {{9, 13}, {9, 13}, {21, 17}},
      {{9, 13}, {36, 52}, {5, 3}},   {{9, 13}, {4, 3}, {7, 11}},
      {{1, 1}, {4, 4}, {3, 5}},      {{9, 13}, {36, 52}, {1, 1}},
      {{1, 1}, {1, 1}, {1, 1}},      {{1, 13}, {5, 52}, {3, 300}}};
  for (const std::vector<Size>& size : sizes) {
    for (int classes : {1, 33, 150}) {
      SCOPED_TRACE(testing::Message()
                   << classes << " classes, picture " << size[2].height << " x "
                   << size[2].width);
      Problem<TypeParam>(size[0], classes, size[1], size[2]).ExpectReference();
    }
  }
}

// The logits of all classes are so close to each other that rounding decides
// which is the largest.
TYPED_TEST(SegmentationArgmaxCudaTest, RoundsAsTheScalarLoopDoes) {
  Problem<TypeParam> problem({9, 13}, 40, {36, 52}, {29, 61});
  std::mt19937 random(1);
  std::uniform_real_distribution<float> base(1, 3);
  std::uniform_int_distribution<int> step(-2, 2);
  for (int p = 0; p < problem.size.pixels(); ++p) {
    const float common = base(random);
    for (int k = 0; k < problem.classes(); ++k) {
      problem.logits.at(p, k) =
          static_cast<TypeParam>(common * (1 + step(random) * 0x1p-23f));
    }
  }
  problem.ExpectReference();
}

TYPED_TEST(SegmentationArgmaxCudaTest, TwoRunsAreEqual) {
  const Problem<TypeParam> problem({9, 13}, 7, {36, 52}, {29, 61});
  const Map first = problem.Run(), second = problem.Run();
  EXPECT_EQ(first.labels, second.labels);
  EXPECT_EQ(first.confidence, second.confidence);
  EXPECT_EQ(first.areas, second.areas);
}

TYPED_TEST(SegmentationArgmaxCudaTest, TakesTheMostClasses) {
  Problem<TypeParam> problem({2, 1}, 65535, {2, 1}, {2, 1});
  problem.Fill(65534, 100);
  const Map map = problem.Run();
  EXPECT_EQ(map.labels, std::vector<uint16_t>(2, 65534));
  EXPECT_EQ(map.areas[65534], 1002);
}

TYPED_TEST(SegmentationArgmaxCudaTest, RowRangesJoinToTheWhole) {
  Problem<TypeParam> problem({9, 13}, 7, {36, 52}, {29, 61});
  const Map whole = problem.Run();
  int begin = 0;
  for (int end : {1, 2, 2, 17, 29}) {
    problem.row_begin = begin;
    problem.row_end = end;
    const Map part = problem.Run();
    for (int p = 0; p < problem.out.pixels(); ++p) {
      const bool inside = p >= begin * 61 && p < end * 61;
      ASSERT_EQ(part.labels[p], inside ? whole.labels[p] : 0xffff);
      ASSERT_EQ(part.confidence[p], inside ? whole.confidence[p] : 0xff);
    }
    EXPECT_EQ(std::accumulate(part.areas.begin(), part.areas.end(), int64_t{0}),
              7 * 1000 + (end - begin) * 61);
    begin = end;
  }
}

TYPED_TEST(SegmentationArgmaxCudaTest, ConfidenceAndAreasAreOptional) {
  const Problem<TypeParam> problem({9, 13}, 7, {36, 52}, {29, 61});
  const Map map = problem.Run(/*confidence=*/false, /*areas=*/false);
  EXPECT_EQ(map.labels, problem.Run().labels);
  EXPECT_EQ(map.confidence, std::vector<uint8_t>(29 * 61, 0xff));
  EXPECT_EQ(map.areas, std::vector<int64_t>(7, 1000));
}

TYPED_TEST(SegmentationArgmaxCudaTest, TheLowestClassWinsATie) {
  for (int lowest : {0, 3, 31, 32, 40}) {
    Problem<TypeParam> problem({3, 3}, 75, {12, 12}, {11, 10});
    for (int k : {lowest, lowest + 1, lowest + 32, 73, 74}) problem.Fill(k, 20);
    EXPECT_EQ(problem.Run().labels, std::vector<uint16_t>(110, lowest));
  }
}

TYPED_TEST(SegmentationArgmaxCudaTest, ANanNeverWins) {
  for (int poisoned : {0, 1, 31, 32, 49}) {
    Problem<TypeParam> clean({3, 3}, 50, {3, 3}, {3, 3});
    Problem<TypeParam> problem = clean;
    problem.Fill(poisoned, kNan);
    clean.Fill(poisoned, -100);
    const Map map = problem.Run();
    EXPECT_EQ(map.labels, clean.Run().labels);
    EXPECT_EQ(map.confidence, std::vector<uint8_t>(9, 0));
  }
}

TYPED_TEST(SegmentationArgmaxCudaTest, WithoutAWinnerItIsClass0) {
  for (float value : {kNan, -kInfinity}) {
    Problem<TypeParam> problem({3, 3}, 40, {12, 12}, {11, 10});
    for (int k = 0; k < 40; ++k) problem.Fill(k, value);
    const Map map = problem.Run();
    EXPECT_EQ(map.labels, std::vector<uint16_t>(110, 0));
    EXPECT_EQ(map.confidence, std::vector<uint8_t>(110, 0));
    EXPECT_EQ(map.areas[0], 1110);
  }
}

TYPED_TEST(SegmentationArgmaxCudaTest, InfinitiesAreAsInTheScalarLoop) {
  for (float value : {kInfinity, -kInfinity}) {
    Problem<TypeParam> problem({9, 13}, 40, {36, 52}, {29, 61});
    for (int p = 0; p < 9 * 13; p += 5) {
      problem.logits.at(p, p % 40) = static_cast<TypeParam>(value);
    }
    problem.ExpectReference();
  }
}

TYPED_TEST(SegmentationArgmaxCudaTest, PoisonStaysAmongItsNeighbours) {
  Problem<TypeParam> problem({9, 13}, 20, {36, 52}, {36, 52});
  const Map clean = problem.Run();
  for (int k = 0; k < 20; ++k) {
    problem.logits.at(0, k) = static_cast<TypeParam>(kNan);
  }
  const Map map = problem.Run();
  for (int y = 0; y < 36; ++y) {
    for (int x = 0; x < 52; ++x) {
      // At a scale of 4, the top left logit affects 6 pixels per axis.
      const bool reached = x < 6 && y < 6;
      EXPECT_EQ(map.confidence[y * 52 + x],
                reached ? 0 : clean.confidence[y * 52 + x]);
    }
  }
}

TYPED_TEST(SegmentationArgmaxCudaTest, AgreesWithTheScalarLoopOfRealSizes) {
  if (Emulated()) GTEST_SKIP() << "too large for the emulator";
  for (Size out : {Size{512, 683}, Size{480, 640}, Size{1200, 1600}}) {
    Problem<TypeParam>({128, 171}, 150, {512, 683}, out).ExpectReference();
  }
}

class SegmentationArgmaxCudaFixtureTest : public DeviceTest {};

void ExpectLabels(const Map& map, const at::Tensor& expected) {
  ASSERT_EQ(map.labels.size(), expected.numel());
  int different = 0;
  for (int p = 0; p < expected.numel(); ++p) {
    different += map.labels[p] != expected.const_data_ptr<uint8_t>()[p];
  }
  EXPECT_LE(different, expected.numel() / 1000);
}

TEST_F(SegmentationArgmaxCudaFixtureTest, AgreesWithTheFixture) {
  const Fixture fixture("upernet");
  const Size input = {100, 136}, picture = {75, 102};
  const at::Tensor logits =
      fixture["out.logits"][1].permute({1, 2, 0}).contiguous();
  for (Size out : {input, picture}) {
    Problem<float> problem(
        {static_cast<int>(logits.size(0)), static_cast<int>(logits.size(1))},
        static_cast<int>(logits.size(2)), input, out);
    std::copy_n(logits.const_data_ptr<float>(), logits.numel(),
                problem.logits.data());
    const char* const key =
        out.height == input.height ? "out.pred_img" : "out.pred_ori";
    ExpectLabels(problem.Run(), fixture[key][1]);
  }
}

}  // namespace
}  // namespace sfmamba::kernels
