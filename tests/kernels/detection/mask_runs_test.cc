#include "kernels/detection/mask_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/detection/mask_paste.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class MaskRunsTest : public testing::TestWithParam<CpuIsa> {
 protected:
  // Finds the runs of all lines, a few lines at a time, and expects that they
  // consist of the pixels that MaskPaste sets.
  void ExpectPasted(MaskRunsArgs args, int height, int width) const {
    args.area = MaskArea(args.x1, args.y1, args.x2, args.y2, height, width);
    std::vector<uint8_t> pasted(size_t{1} * args.area.width() *
                                args.area.height());
    MaskPasteCpu({args.mask, args.side, args.x1, args.y1, args.x2, args.y2,
                  args.threshold, args.area, pasted.data()},
                 CpuIsa::kScalar);
    for (const bool by_rows : {false, true}) {
      args.by_rows = by_rows;
      ASSERT_EQ(Pixels(args), pasted)
          << "side " << args.side << " threshold " << args.threshold << " box "
          << args.x1 << " " << args.y1 << " " << args.x2 << " " << args.y2
          << (by_rows ? " by rows" : " by columns");
    }
  }

  std::vector<uint8_t> Pixels(MaskRunsArgs args) const {
    const PixelRect& area = args.area;
    const int first = args.by_rows ? area.top : area.left;
    const int last = args.by_rows ? area.bottom : area.right;
    base::LineRuns runs;
    for (int line = first, step = 1; line < last; line += step, step += 97) {
      args.begin = line;
      args.end = std::min(line + step, last);
      MaskRunsCpu(args, &runs, GetParam());
    }
    EXPECT_EQ(runs.lines(), last - first);
    std::vector<uint8_t> pixels(size_t{1} * area.width() * area.height());
    for (int i = 0; i < runs.lines(); ++i) {
      const absl::Span<const int> edges = runs.line(i);
      EXPECT_EQ(edges.size() % 2, 0);
      EXPECT_TRUE(std::is_sorted(edges.begin(), edges.end()));
      for (size_t k = 0; k < edges.size(); k += 2) {
        for (int at = edges[k]; at < edges[k + 1]; ++at) {
          const int x = args.by_rows ? at : first + i;
          const int y = args.by_rows ? first + i : at;
          pixels.at(size_t{1} * (y - area.top) * area.width() + x - area.left) =
              1;
        }
      }
    }
    return pixels;
  }
};

INSTANTIATE_TEST_SUITE_P(Isa, MaskRunsTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

struct Corners {
  float x1, y1, x2, y2;
};

MaskRunsArgs ArgsOf(const std::vector<float>& mask, const Corners& box,
                    float threshold) {
  MaskRunsArgs args{};
  args.mask = mask.data();
  args.side = std::lround(std::sqrt(mask.size()));
  args.x1 = box.x1;
  args.y1 = box.y1;
  args.x2 = box.x2;
  args.y2 = box.y2;
  args.threshold = threshold;
  return args;
}

const std::vector<Corners>& Boxes() {
  static const auto* const boxes =
      new std::vector<Corners>{{0, 0, 317, 61},
                               {-40.5f, -20.25f, 400.75f, 90},
                               {3.2f, 5.1f, 11.9f, 55},
                               {100.25f, 20, 100.75f, 20.5f},
                               {100, 20, 101, 21},
                               {-3, -4, 1.5f, 2.5f},
                               {314.5f, 60.5f, 337, 70},
                               {17, 30.5f, 300, 30.500002f},
                               {17, 30, 17 + 1e-30f, 31},
                               {40, 2, 97.3f, 57.9f},
                               {-1e6f, -1e5f, 1e6f, 1e6f},
                               {-1e9f, -1e9f, 1e9f, 1e9f},
                               {400, 10, 420, 20}};
  return *boxes;
}

TEST_P(MaskRunsTest, AreThePastedPixelsOfNoise) {
  std::mt19937 random(1);
  for (const int side : {1, 2, 3, 7, 28, 56, 60, 61}) {
    for (const float deviation : {1.0f, 0.01f, 1e-6f}) {
      Matrix<float> noise(1, side * side);
      noise.FillNormal(random, 0.5f, deviation);
      const std::vector<float> mask(noise.data(), noise.data() + side * side);
      for (const Corners& box : Boxes()) {
        for (const float threshold : {0.5f, 0.3f}) {
          ExpectPasted(ArgsOf(mask, box, threshold), 61, 317);
        }
      }
    }
  }
}

// Interpolating these values often gives exactly the threshold.
TEST_P(MaskRunsTest, AreThePastedPixelsOfPlateaus) {
  std::mt19937 random(2);
  for (const int side : {1, 2, 5, 28}) {
    std::vector<float> mask(side * side);
    for (float& value : mask) value = 0.25f * (random() % 5);
    for (const Corners& box : Boxes()) {
      for (const float threshold : {0.0f, 0.25f, 0.5f, 1.0f}) {
        ExpectPasted(ArgsOf(mask, box, threshold), 61, 317);
      }
    }
  }
}

TEST_P(MaskRunsTest, AreThePastedPixelsOfAWholeMask) {
  for (const float value : {0.0f, 0.5f, 0.50000006f, 0.49999997f, 1.0f}) {
    const std::vector<float> mask(28 * 28, value);
    for (const Corners& box : Boxes()) {
      for (const float threshold : {-1.0f, 0.0f, 0.5f, 1.0f}) {
        ExpectPasted(ArgsOf(mask, box, threshold), 61, 317);
      }
    }
  }
}

// Pastes an ellipse, which is like an object, into random boxes.
TEST_P(MaskRunsTest, AreThePastedPixelsOfAnEllipse) {
  std::vector<float> mask;
  for (int y = 0; y < 28; ++y) {
    for (int x = 0; x < 28; ++x) {
      const float u = (x - 13.5f) / 12, v = (y - 13.5f) / 12;
      mask.push_back(1 / (1 + std::exp(8 * (u * u + v * v - 1))));
    }
  }
  std::mt19937 random(3);
  std::uniform_real_distribution<float> place(-50, 650);
  for (int i = 0; i < 60; ++i) {
    const auto [x1, x2] = std::minmax({place(random), place(random)});
    const auto [y1, y2] = std::minmax({place(random), place(random)});
    ExpectPasted(ArgsOf(mask, {x1, y1, x2, y2}, 0.5f), 601, 577);
  }
}

TEST_P(MaskRunsTest, AreThePastedPixelsInALargePicture) {
  std::mt19937 random(4);
  Matrix<float> noise(1, 28 * 28);
  noise.FillNormal(random, 0.5f, 0.2f);
  const std::vector<float> mask(noise.data(), noise.data() + 28 * 28);
  ExpectPasted(ArgsOf(mask, {1.5f, 3.25f, 2999.75f, 1996.5f}, 0.5f), 2003,
               3001);
}

TEST_P(MaskRunsTest, ValuesThatAreNotNumbersAreTakenAsPasted) {
  std::mt19937 random(5);
  for (const float odd : {kNan, kInfinity, -kInfinity, 3e38f, 1e31f}) {
    Matrix<float> noise(1, 28 * 28);
    noise.FillNormal(random, 0.5f, 0.5f);
    std::vector<float> mask(noise.data(), noise.data() + 28 * 28);
    for (const int at : {0, 5, 27, 300, 783}) mask[at] = odd;
    mask[301] = -odd;
    for (const Corners& box : Boxes()) {
      ExpectPasted(ArgsOf(mask, box, 0.5f), 61, 317);
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
