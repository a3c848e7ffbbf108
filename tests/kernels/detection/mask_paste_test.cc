#include "kernels/detection/mask_paste.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/fixture.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class MaskPasteTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, MaskPasteTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

struct Corners {
  float x1, y1, x2, y2;
};

// Returns the whole picture with the mask pasted.
std::vector<uint8_t> Paste(const float* mask, int side, const Corners& box,
                           float threshold, int height, int width, CpuIsa isa) {
  const PixelRect area =
      MaskArea(box.x1, box.y1, box.x2, box.y2, height, width);
  constexpr int kGuard = 64;
  std::vector<uint8_t> pasted(area.width() * area.height() + kGuard, 7);
  MaskPasteCpu({mask, side, box.x1, box.y1, box.x2, box.y2, threshold, area,
                pasted.data()},
               isa);
  EXPECT_EQ(std::vector<uint8_t>(pasted.end() - kGuard, pasted.end()),
            std::vector<uint8_t>(kGuard, 7));
  std::vector<uint8_t> picture(height * width);
  for (int y = area.top; y < area.bottom; ++y) {
    std::copy_n(&pasted[(y - area.top) * area.width()], area.width(),
                &picture[y * width + area.left]);
  }
  return picture;
}

// Returns the mask's value at (u, v), interpolated in fp64. (0, 0) is the
// centre of the first cell. Cells outside of the mask count as 0.
double Sample(const float* mask, int side, double u, double v) {
  double sum = 0;
  for (int j = 0; j < side; ++j) {
    for (int i = 0; i < side; ++i) {
      sum += std::max(0.0, 1 - std::abs(u - i)) *
             std::max(0.0, 1 - std::abs(v - j)) * mask[j * side + i];
    }
  }
  return sum;
}

TEST_P(MaskPasteTest, AgreesWithTheReference) {
  const Fixture fixture("mask_head");
  const at::Tensor masks = fixture["paste.masks"];
  const at::Tensor boxes = fixture["paste.boxes"];
  const at::Tensor binary = fixture["paste.binary"];
  const int height = binary.size(1), width = binary.size(2);
  int different = 0;
  for (int i = 0; i < masks.size(0); ++i) {
    const float* box = boxes.const_data_ptr<float>() + 4 * i;
    const std::vector<uint8_t> picture = Paste(
        masks.const_data_ptr<float>() + i * 28 * 28, 28,
        {box[0], box[1], box[2], box[3]}, 0.5f, height, width, GetParam());
    for (int p = 0; p < height * width; ++p) {
      different += picture[p] !=
                   binary.const_data_ptr<uint8_t>()[i * height * width + p];
    }
  }
  EXPECT_LE(different, masks.size(0) * height * width / 1000);
}

TEST_P(MaskPasteTest, AgreesWithFp64AndTheScalarLoop) {
  constexpr int kHeight = 61, kWidth = 317;
  std::mt19937 random(1);
  for (int side : {1, 2, 7, 28}) {
    Matrix<float> mask(1, side * side);
    mask.FillNormal(random, 0.5f, 0.5f);
    for (const Corners& box : std::vector<Corners>{
             {0, 0, kWidth, kHeight},
             {-40.5f, -20.25f, 400.75f, 90},
             {3.2f, 5.1f, 11.9f, 55},
             {100.25f, 20, 100.75f, 20.5f},
             {100, 20, 101, 21},
             {-3, -4, 1.5f, 2.5f},
             {kWidth - 2.5f, kHeight - 0.5f, kWidth + 20, kHeight + 9},
             {17, 30.5f, 300, 30.500002f},
             {17, 30, 17 + 1e-30f, 31}}) {
      const std::vector<uint8_t> picture =
          Paste(mask.data(), side, box, 0.5f, kHeight, kWidth, GetParam());
      EXPECT_EQ(picture, Paste(mask.data(), side, box, 0.5f, kHeight, kWidth,
                               CpuIsa::kScalar));
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
          const double u =
              (x + 0.5 - box.x1) / (double(box.x2) - box.x1) * side - 0.5;
          const double v =
              (y + 0.5 - box.y1) / (double(box.y2) - box.y1) * side - 0.5;
          // In fp32, the right edge 17 + 1e-30 is equal to the left edge 17.
          // This box has no width and covers no pixel.
          const double value =
              box.x2 > box.x1 ? Sample(mask.data(), side, u, v) : 0;
          // Near the threshold, the rounding in fp32 decides whether the pixel
          // is set. Such pixels are not compared.
          if (std::abs(value - 0.5) < 1e-4) continue;
          ASSERT_EQ(picture[y * kWidth + x], value >= 0.5)
              << "side " << side << " box " << box.x1 << " " << box.y1
              << " pixel " << x << " " << y;
        }
      }
    }
  }
}

TEST_P(MaskPasteTest, ANanIsNotSet) {
  std::vector<float> mask(28 * 28, 0.9f);
  mask[14 * 28 + 14] = kNan;
  const std::vector<uint8_t> picture =
      Paste(mask.data(), 28, {0, 0, 28, 28}, 0.5f, 28, 28, GetParam());
  EXPECT_EQ(picture[14 * 28 + 14], 0);
  EXPECT_EQ(picture[20 * 28 + 20], 1);
}

TEST_P(MaskPasteTest, AValueAtTheThresholdIsSet) {
  const std::vector<float> mask(4, 0.25f);
  const std::vector<uint8_t> picture =
      Paste(mask.data(), 2, {0, 0, 2, 2}, 0.25f, 2, 2, GetParam());
  EXPECT_EQ(picture, std::vector<uint8_t>(4, 1));
}

TEST_P(MaskPasteTest, SurvivesBoxesOfAnySize) {
  const std::vector<float> mask(4, 1);
  for (float huge : {1e9f, 1e20f, 1e38f, 3e38f, kInfinity, kNan}) {
    for (const Corners& box :
         std::vector<Corners>{{-huge, -huge, huge, huge},
                              {-huge, 2, 3, huge},
                              {2, -huge, huge, 3},
                              {huge, huge, huge, huge},
                              {-huge, -huge, -huge, -huge}}) {
      const std::vector<uint8_t> picture =
          Paste(mask.data(), 2, box, 0.5f, 5, 6, GetParam());
      EXPECT_EQ(picture,
                Paste(mask.data(), 2, box, 0.5f, 5, 6, CpuIsa::kScalar));
    }
  }
  EXPECT_EQ(
      Paste(mask.data(), 2, {-1e9f, -1e9f, 1e9f, 1e9f}, 0.5f, 5, 6, GetParam()),
      std::vector<uint8_t>(30, 1));
}

void ExpectArea(const PixelRect& area, int left, int top, int right,
                int bottom) {
  EXPECT_EQ(area.left, left);
  EXPECT_EQ(area.top, top);
  EXPECT_EQ(area.right, right);
  EXPECT_EQ(area.bottom, bottom);
}

TEST(MaskAreaTest, IsTheBoxAndAMargin) {
  ExpectArea(MaskArea(3.5f, 4, 7.5f, 9, 20, 30), 2, 3, 9, 10);
}

TEST(MaskAreaTest, EndsWithThePicture) {
  ExpectArea(MaskArea(-5, 0.5f, 100, 19.5f, 20, 30), 0, 0, 30, 20);
  ExpectArea(MaskArea(-1e30f, -1e30f, 1e30f, 1e30f, 20, 30), 0, 0, 30, 20);
}

TEST(MaskAreaTest, IsEmptyWithoutABox) {
  ExpectArea(MaskArea(3, 4, 3, 9, 20, 30), 0, 0, 0, 0);
  ExpectArea(MaskArea(3, 9, 7, 4, 20, 30), 0, 0, 0, 0);
  ExpectArea(MaskArea(kNan, 4, 7, 9, 20, 30), 0, 0, 0, 0);
  ExpectArea(MaskArea(3, 4, 7, kNan, 20, 30), 0, 0, 0, 0);
  ExpectArea(MaskArea(-kInfinity, 4, kInfinity, 9, 20, 30), 0, 0, 0, 0);
  ExpectArea(MaskArea(-3e38f, 4, 3e38f, 9, 20, 30), 0, 0, 0, 0);
}

TEST(MaskAreaTest, IsEmptyOutsideThePicture) {
  ExpectArea(MaskArea(40, 4, 50, 9, 20, 30), 0, 0, 0, 0);
  ExpectArea(MaskArea(3, -50, 7, -40, 20, 30), 0, 0, 0, 0);
}

}  // namespace
}  // namespace sfmamba::kernels
