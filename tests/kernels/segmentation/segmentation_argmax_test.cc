#include "kernels/segmentation/segmentation_argmax.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/fixture.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class SegmentationArgmaxTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, SegmentationArgmaxTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

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
struct Problem {
  Problem(Size size, int classes, Size input, Size out)
      : size(size), input(input), out(out), logits(size.pixels(), classes, 0) {
    std::mt19937 random(1);
    logits.FillNormal(random, 0, 2);
  }

  int classes() const { return logits.columns(); }

  SegmentationArgmaxArgs Args(Map* map) const {
    map->labels.resize(out.pixels(), 0xffff);
    map->confidence.resize(out.pixels(), 0xff);
    map->areas.resize(classes());
    return {logits.data(),    size.height,        size.width,
            classes(),        input.height,       input.width,
            out.height,       out.width,          0,
            out.height,       map->labels.data(), map->confidence.data(),
            map->areas.data()};
  }

  Map Run(CpuIsa isa) const {
    Map map;
    SegmentationArgmaxCpu(Args(&map), isa);
    EXPECT_TRUE(logits.GuardsIntact());
    return map;
  }

  Size size, input, out;
  Matrix<float> logits;
};

// Resizes a map `in` of [size, classes] to [out, classes]. The resize is
// bilinear with half-pixel centres, in fp64.
Matrix<double> Resize(const Matrix<double>& in, Size size, Size out) {
  Matrix<double> resized(out.pixels(), in.columns());
  for (int y = 0; y < out.height; ++y) {
    const double v = std::max((y + 0.5) * size.height / out.height - 0.5, 0.0);
    const int top = v;
    const int bottom = std::min(top + 1, size.height - 1);
    for (int x = 0; x < out.width; ++x) {
      const double u = std::max((x + 0.5) * size.width / out.width - 0.5, 0.0);
      const int left = u;
      const int right = std::min(left + 1, size.width - 1);
      for (int k = 0; k < in.columns(); ++k) {
        const auto row = [&](int i) {
          return (1 - (u - left)) * in.at(i * size.width + left, k) +
                 (u - left) * in.at(i * size.width + right, k);
        };
        resized.at(y * out.width + x, k) =
            (1 - (v - top)) * row(top) + (v - top) * row(bottom);
      }
    }
  }
  return resized;
}

// Returns the logits of each pixel of the picture. They are resized to the size
// of the model's input, and then to the size of the picture.
Matrix<double> Resized(const Problem& problem) {
  return Resize(Resize(ToDouble(problem.logits), problem.size, problem.input),
                problem.input, problem.out);
}

double Probability(const Matrix<double>& logits, int pixel, int label) {
  double sum = 0;
  for (int k = 0; k < logits.columns(); ++k) {
    sum += std::exp(logits.at(pixel, k) - logits.at(pixel, label));
  }
  return 1 / sum;
}

// The sizes of each case are the sizes of the logits, of the model's input and
// of the picture. In some cases, the picture is four times as large as the
// logits, in others smaller than the logits. In one case, the model's input is
// smaller than the logits. In some cases, the logits have only one pixel.
const std::vector<std::vector<Size>> kSizes = {
    {{9, 13}, {36, 52}, {36, 52}}, {{9, 13}, {36, 52}, {29, 61}},
    {{9, 13}, {9, 13}, {9, 13}},   {{9, 13}, {9, 13}, {21, 17}},
    {{9, 13}, {36, 52}, {5, 3}},   {{9, 13}, {4, 3}, {7, 11}},
    {{1, 1}, {4, 4}, {3, 5}},      {{9, 13}, {36, 52}, {1, 1}},
    {{1, 1}, {1, 1}, {1, 1}},      {{1, 13}, {5, 52}, {7, 300}}};

TEST_P(SegmentationArgmaxTest, AgreesWithFp64AndTheScalarLoop) {
  for (const std::vector<Size>& sizes : kSizes) {
    for (int classes : {1, 2, 7, 8, 16, 17, 150, 151}) {
      SCOPED_TRACE(testing::Message()
                   << classes << " classes, picture " << sizes[2].height
                   << " x " << sizes[2].width);
      const Problem problem(sizes[0], classes, sizes[1], sizes[2]);
      const Map map = problem.Run(GetParam());
      const Map scalar = problem.Run(CpuIsa::kScalar);
      EXPECT_EQ(map.labels, scalar.labels);
      EXPECT_EQ(map.areas, scalar.areas);

      const Matrix<double> expected = Resized(problem);
      std::vector<int64_t> areas(classes);
      for (int p = 0; p < problem.out.pixels(); ++p) {
        const int label = map.labels[p];
        ASSERT_LT(label, classes);
        ++areas[label];
        const double best =
            *std::max_element(&expected.at(p, 0), &expected.at(p, 0) + classes);
        EXPECT_GE(expected.at(p, label), best - 1e-4) << p;
        EXPECT_NEAR(map.confidence[p], 255 * Probability(expected, p, label),
                    0.51)
            << p;
      }
      EXPECT_EQ(map.areas, areas);
    }
  }
}

TEST_P(SegmentationArgmaxTest, TakesTheMostClasses) {
  Problem problem({2, 2}, 65535, {4, 4}, {3, 3});
  for (int p = 0; p < 4; ++p) problem.logits.at(p, 65534) = 100;
  EXPECT_EQ(problem.Run(GetParam()).labels, std::vector<uint16_t>(9, 65534));
}

void ExpectLabels(const Map& map, const at::Tensor& expected) {
  ASSERT_EQ(map.labels.size(), expected.numel());
  int different = 0;
  for (int p = 0; p < expected.numel(); ++p) {
    different += map.labels[p] != expected.const_data_ptr<uint8_t>()[p];
  }
  EXPECT_LE(different, expected.numel() / 1000);
}

Problem FixtureProblem(const at::Tensor& logits, Size input, Size out) {
  const at::Tensor last = logits.permute({1, 2, 0}).contiguous();
  Problem problem(
      {static_cast<int>(last.size(0)), static_cast<int>(last.size(1))},
      last.size(2), input, out);
  std::copy_n(last.const_data_ptr<float>(), last.numel(),
              problem.logits.data());
  return problem;
}

TEST_P(SegmentationArgmaxTest, AgreesWithTheReference) {
  const Fixture fixture("upernet");
  const Size input = {100, 136}, picture = {75, 102};
  for (int i = 0; i < 2; ++i) {
    const at::Tensor logits = fixture["out.logits"][i];
    ExpectLabels(FixtureProblem(logits, input, input).Run(GetParam()),
                 fixture["out.pred_img"][i]);
    ExpectLabels(FixtureProblem(logits, input, picture).Run(GetParam()),
                 fixture["out.pred_ori"][i]);
  }
}

// With two classes, the confidence follows from the difference of their logits.
TEST_P(SegmentationArgmaxTest, ResizesLikeTheReference) {
  const Fixture fixture("upernet");
  const Size input = {100, 136}, picture = {75, 102};
  const at::Tensor logits = fixture["out.logits"][0].slice(0, 0, 2);
  for (Size out : {input, picture}) {
    const Map map = FixtureProblem(logits, input, out).Run(GetParam());
    const at::Tensor expected =
        fixture[out.height == input.height ? "out.logits_img.0"
                                           : "out.logits_ori.0"];
    const float* values = expected.const_data_ptr<float>();
    for (int p = 0; p < out.pixels(); ++p) {
      const double difference =
          std::abs(double(values[p]) - values[out.pixels() + p]);
      EXPECT_NEAR(map.confidence[p], 255 / (1 + std::exp(-difference)), 0.6);
    }
  }
}

TEST_P(SegmentationArgmaxTest, RowRangesJoinToTheWhole) {
  const Problem problem({9, 13}, 7, {36, 52}, {29, 61});
  const Map whole = problem.Run(GetParam());
  Map parts;
  int begin = 0;
  for (int end : {1, 2, 2, 17, 29}) {
    SegmentationArgmaxArgs args = problem.Args(&parts);
    args.row_begin = begin;
    args.row_end = end;
    SegmentationArgmaxCpu(args, GetParam());
    for (int p = end * 61; p < 29 * 61; ++p) EXPECT_EQ(parts.labels[p], 0xffff);
    begin = end;
  }
  EXPECT_EQ(parts.labels, whole.labels);
  EXPECT_EQ(parts.confidence, whole.confidence);
  EXPECT_EQ(parts.areas, whole.areas);
}

TEST_P(SegmentationArgmaxTest, ConfidenceAndAreasAreOptional) {
  const Problem problem({9, 13}, 7, {36, 52}, {29, 61});
  Map map;
  SegmentationArgmaxArgs args = problem.Args(&map);
  args.confidence = nullptr;
  args.areas = nullptr;
  SegmentationArgmaxCpu(args, GetParam());
  EXPECT_EQ(map.labels, problem.Run(GetParam()).labels);
}

TEST_P(SegmentationArgmaxTest, TheLowestClassWinsATie) {
  for (int lowest : {0, 3, 7, 9, 40}) {
    Problem problem({3, 3}, 50, {12, 12}, {11, 10});
    for (int p = 0; p < 9; ++p) {
      for (int k : {lowest, lowest + 1, lowest + 5, 48, 49}) {
        problem.logits.at(p, k) = 20;
      }
    }
    EXPECT_EQ(problem.Run(GetParam()).labels,
              std::vector<uint16_t>(110, lowest));
  }
}

TEST_P(SegmentationArgmaxTest, ANanNeverWins) {
  for (int classes : {3, 8, 150}) {
    for (int poisoned = 0; poisoned < classes; ++poisoned) {
      Problem clean({3, 3}, classes, {3, 3}, {3, 3});
      Problem problem = clean;
      for (int p = 0; p < 9; ++p) {
        problem.logits.at(p, poisoned) = kNan;
        clean.logits.at(p, poisoned) = -100;
      }
      const Map map = problem.Run(GetParam());
      EXPECT_EQ(map.labels, clean.Run(GetParam()).labels);
      EXPECT_EQ(map.confidence, std::vector<uint8_t>(9, 0));
    }
  }
}

TEST_P(SegmentationArgmaxTest, WithoutAWinnerItIsClass0) {
  for (float value : {kNan, -kInfinity}) {
    Problem problem({3, 3}, 20, {12, 12}, {11, 10});
    for (int p = 0; p < 9; ++p) {
      for (int k = 0; k < 20; ++k) problem.logits.at(p, k) = value;
    }
    const Map map = problem.Run(GetParam());
    EXPECT_EQ(map.labels, std::vector<uint16_t>(110, 0));
    EXPECT_EQ(map.confidence, std::vector<uint8_t>(110, 0));
    EXPECT_EQ(map.areas[0], 110);
  }
}

TEST_P(SegmentationArgmaxTest, PoisonStaysAmongItsNeighbours) {
  Problem problem({9, 13}, 20, {36, 52}, {36, 52});
  const Map clean = problem.Run(GetParam());
  for (int k = 0; k < 20; ++k) problem.logits.at(0, k) = kNan;
  const Map map = problem.Run(GetParam());
  for (int y = 0; y < 36; ++y) {
    for (int x = 0; x < 52; ++x) {
      // At a scale of 4, the top left logit affects 6 pixels per axis.
      const bool reached = x < 6 && y < 6;
      EXPECT_EQ(map.confidence[y * 52 + x],
                reached ? 0 : clean.confidence[y * 52 + x]);
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
