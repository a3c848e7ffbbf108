#include "kernels/detection/mask_paste_cuda.h"

#include <cmath>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/fixture.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Instance {
  std::vector<float> mask;  // [side, side]
  int side;
  float x1, y1, x2, y2;
  float threshold = 0.5f;
};

struct Picture {
  int height, width;
};

// Returns the arguments for MaskPasteCpu(). `out` is still null.
MaskPasteArgs ArgsOf(const Instance& instance, const Picture& picture) {
  const auto& [mask, side, x1, y1, x2, y2, threshold] = instance;
  return {mask.data(), side,
          x1,          y1,
          x2,          y2,
          threshold,   MaskArea(x1, y1, x2, y2, picture.height, picture.width),
          nullptr};
}

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> Reference(const std::vector<Instance>& instances,
                             const Picture& picture) {
  std::vector<Bytes> all;
  for (const Instance& instance : instances) {
    MaskPasteArgs args = ArgsOf(instance, picture);
    Bytes& out = all.emplace_back(args.area.width() * args.area.height());
    args.out = out.data();
    MaskPasteCpu(args, CpuIsa::kScalar);
  }
  return all;
}

// Pastes all instances of a picture in one call.
std::vector<Bytes> Paste(const std::vector<Instance>& instances,
                         const Picture& picture) {
  std::deque<DeviceArray<float>> masks;
  std::deque<DeviceArray<uint8_t>> outs;
  std::vector<MaskPasteArgs> all;
  for (const Instance& instance : instances) {
    MaskPasteArgs& args = all.emplace_back(ArgsOf(instance, picture));
    args.mask = masks.emplace_back(instance.mask).data();
    args.out = outs.emplace_back(args.area.width() * args.area.height()).data();
  }
  const DeviceArray<MaskPasteArgs> descriptors(all);
  EXPECT_TRUE(MaskPasteCuda(descriptors.data(), static_cast<int>(all.size()),
                            TestStream())
                  .ok());
  std::vector<Bytes> pasted;
  for (const DeviceArray<uint8_t>& out : outs) {
    EXPECT_TRUE(out.GuardsIntact());
    pasted.push_back(out.ToHost());
  }
  return pasted;
}

void ExpectReference(const std::vector<Instance>& instances,
                     const Picture& picture) {
  const std::vector<Bytes> pasted = Paste(instances, picture);
  const std::vector<Bytes> expected = Reference(instances, picture);
  ASSERT_EQ(pasted.size(), expected.size());
  for (size_t i = 0; i < pasted.size(); ++i) {
    EXPECT_EQ(pasted[i], expected[i]) << "instance " << i;
  }
}

Instance RandomMask(std::mt19937& random, int side, float x1, float y1,
                    float x2, float y2) {
  return {Normals(random, side * side, 0.5f, 0.5f), side, x1, y1, x2, y2};
}

class MaskPasteCudaTest : public DeviceTest {};

TEST_F(MaskPasteCudaTest, AgreesWithTheFixture) {
  const Fixture fixture("mask_head");
  const at::Tensor masks = fixture["paste.masks"];
  const at::Tensor boxes = fixture["paste.boxes"];
  const at::Tensor binary = fixture["paste.binary"];
  const Picture picture = {static_cast<int>(binary.size(1)),
                           static_cast<int>(binary.size(2))};
  std::vector<Instance> instances;
  for (int i = 0; i < masks.size(0); ++i) {
    const float* mask = masks.const_data_ptr<float>() + i * 28 * 28;
    const float* box = boxes.const_data_ptr<float>() + 4 * i;
    instances.push_back(
        {{mask, mask + 28 * 28}, 28, box[0], box[1], box[2], box[3]});
  }
  const std::vector<Bytes> pasted = Paste(instances, picture);
  int64_t different = 0;
  for (int i = 0; i < masks.size(0); ++i) {
    const PixelRect area = ArgsOf(instances[i], picture).area;
    const uint8_t* expected = binary.const_data_ptr<uint8_t>() +
                              int64_t{i} * picture.height * picture.width;
    for (int y = 0; y < picture.height; ++y) {
      for (int x = 0; x < picture.width; ++x) {
        const bool inside = x >= area.left && x < area.right && y >= area.top &&
                            y < area.bottom;
        const int set =
            inside ? pasted[i][(y - area.top) * area.width() + x - area.left]
                   : 0;
        different += set != expected[y * picture.width + x];
      }
    }
  }
  EXPECT_LE(different, binary.numel() / 1000);
}

TEST_F(MaskPasteCudaTest, SetsThePixelsOfTheScalarLoop) {
  const Picture picture = {61, 317};
  std::mt19937 random(1);
  std::vector<Instance> instances;
  for (int side : {1, 2, 7, 28}) {
    for (const std::vector<float>& box :
         std::vector<std::vector<float>>{{0, 0, 317, 61},
                                         {-40.5f, -20.25f, 400.75f, 90},
                                         {3.2f, 5.1f, 11.9f, 55},
                                         {100.25f, 20, 100.75f, 20.5f},
                                         {100, 20, 101, 21},
                                         {-3, -4, 1.5f, 2.5f},
                                         {314.5f, 60.5f, 337, 70},
                                         {17, 30.5f, 300, 30.500002f},
                                         {17, 30, 17 + 1e-30f, 31}}) {
      instances.push_back(
          RandomMask(random, side, box[0], box[1], box[2], box[3]));
    }
  }
  ExpectReference(instances, picture);
  EXPECT_EQ(Paste(instances, picture), Paste(instances, picture));
}

// Rounding decides whether a value reaches the threshold of 0.5. In the first
// mask, all values are near 0.5. In the other masks, columns of 0 and of 1
// alternate. Their boxes place some pixel centres halfway between two columns,
// so that the interpolated value is 0.5.
TEST_F(MaskPasteCudaTest, RoundsAsTheScalarLoopDoes) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> step(-2, 2);
  std::vector<Instance> instances = {
      {std::vector<float>(28 * 28), 28, 3.3f, 5.1f, 51.9f, 83.7f}};
  for (float& value : instances[0].mask) value = 0.5f + step(random) * 0x1p-24f;
  Instance stripes = {std::vector<float>(28 * 28), 28, 3, 3};
  for (int i = 0; i < 28 * 28; ++i) stripes.mask[i] = i % 2;
  for (float width : {7.0f, 10.5f, 14.0f, 21.0f, 70.0f}) {
    stripes.x2 = stripes.x1 + width;
    stripes.y2 = stripes.y1 + 9;
    instances.push_back(stripes);
  }
  ExpectReference(instances, {90, 110});
}

// The mask covers more rows of the picture than its blocks compute at a time.
TEST_F(MaskPasteCudaTest, TallMasksAreWhole) {
  std::mt19937 random(1);
  ExpectReference({RandomMask(random, 28, 1.5f, 3, 7, 298)}, {301, 9});
}

TEST_F(MaskPasteCudaTest, NoMasksAreNothing) {
  EXPECT_TRUE(MaskPasteCuda(nullptr, 0, TestStream()).ok());
}

TEST_F(MaskPasteCudaTest, EmptyAreasAreNothing) {
  std::mt19937 random(1);
  ExpectReference(
      {RandomMask(random, 2, 3, 3, 3, 9), RandomMask(random, 2, 1, 1, 5, 4),
       RandomMask(random, 2, kNan, 3, 5, 9),
       RandomMask(random, 2, 90, 3, 95, 9)},
      {20, 30});
}

TEST_F(MaskPasteCudaTest, ANanIsNotSetAndStaysInItsMask) {
  Instance clean = {std::vector<float>(28 * 28, 0.9f), 28, 0, 0, 28, 28};
  Instance poisoned = clean;
  poisoned.mask[14 * 28 + 14] = kNan;
  const std::vector<Bytes> pasted =
      Paste({poisoned, clean, poisoned}, {28, 28});
  EXPECT_EQ(pasted[1], Bytes(28 * 28, 1));
  EXPECT_EQ(pasted[0][14 * 28 + 14], 0);
  EXPECT_EQ(pasted[0][20 * 28 + 20], 1);
}

TEST_F(MaskPasteCudaTest, AValueAtTheThresholdIsSet) {
  EXPECT_EQ(
      Paste({{std::vector<float>(4, 0.25f), 2, 0, 0, 2, 2, 0.25f}}, {2, 2})[0],
      Bytes(4, 1));
}

TEST_F(MaskPasteCudaTest, SurvivesBoxesOfAnySize) {
  const std::vector<float> mask(4, 1);
  std::vector<Instance> instances;
  for (float huge : {1e9f, 1e20f, 1e38f, 3e38f, kInfinity, kNan}) {
    instances.push_back({mask, 2, -huge, -huge, huge, huge});
    instances.push_back({mask, 2, -huge, 2, 3, huge});
    instances.push_back({mask, 2, 2, -huge, huge, 3});
    instances.push_back({mask, 2, huge, huge, huge, huge});
    instances.push_back({mask, 2, -huge, -huge, -huge, -huge});
  }
  ExpectReference(instances, {5, 6});
}

TEST_F(MaskPasteCudaTest, SetsThePixelsOfTheScalarLoopOfADetectorsSize) {
  if (Emulated()) GTEST_SKIP() << "too large for the emulator";
  std::mt19937 random(1);
  std::uniform_real_distribution<float> corner(-50, 600), side(1, 640);
  std::vector<Instance> instances;
  for (int i = 0; i < 100; ++i) {
    const float x = corner(random), y = corner(random);
    instances.push_back(
        RandomMask(random, 28, x, y, x + side(random), y + side(random)));
  }
  ExpectReference(instances, {480, 640});
}

}  // namespace
}  // namespace sfmamba::kernels
