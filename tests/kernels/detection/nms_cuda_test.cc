#include "kernels/detection/nms_cuda.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/detection/nms.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/detection/nms_candidates.h"
#include "tests/testing/fixture.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Returns the boxes that the scalar loop keeps. The scalar loop does not
// support absent boxes.
std::vector<int32_t> Reference(const Candidates& candidates,
                               float iou_threshold, int max_kept = kAll) {
  std::vector<int32_t> kept(std::min(max_kept, candidates.count()));
  kept.resize(NmsScalar(candidates.Args(iou_threshold, max_kept, kept.data())));
  return kept;
}

// Returns the boxes that the kernel keeps in each image. All images must have
// the same number of boxes.
std::vector<std::vector<int32_t>> KeepOfEach(
    const std::vector<Candidates>& images, float iou_threshold,
    int max_kept = kAll) {
  const int num_images = static_cast<int>(images.size());
  const int count = images[0].count();
  Candidates all;
  for (const Candidates& image : images) {
    all.boxes.insert(all.boxes.end(), image.boxes.begin(), image.boxes.end());
    all.scores.insert(all.scores.end(), image.scores.begin(),
                      image.scores.end());
    all.groups.insert(all.groups.end(), image.groups.begin(),
                      image.groups.end());
  }
  const int most = std::min(max_kept, count);
  const DeviceArray<float> boxes(all.boxes), scores(all.scores);
  const DeviceArray<int32_t> groups(all.groups);
  const DeviceArray<int32_t> kept(num_images * most), num_kept(num_images);
  const DeviceArray<uint8_t> scratch(NmsCudaScratchBytes(num_images, count));
  NmsCudaArgs args{};
  args.num_images = num_images;
  args.num_boxes = count;
  args.boxes = boxes.data();
  args.scores = scores.data();
  args.groups = all.groups.empty() ? nullptr : groups.data();
  args.iou_threshold = iou_threshold;
  args.max_kept = max_kept;
  args.kept = kept.data();
  args.num_kept = num_kept.data();
  args.scratch = scratch.data();
  EXPECT_TRUE(NmsCuda(args, TestStream()).ok());
  EXPECT_TRUE(kept.GuardsIntact());
  EXPECT_TRUE(num_kept.GuardsIntact());
  EXPECT_TRUE(scratch.GuardsIntact());

  const std::vector<int32_t> indices = kept.ToHost();
  std::vector<std::vector<int32_t>> each;
  for (int image = 0; image < num_images; ++image) {
    const auto begin = indices.begin() + image * most;
    const int number = num_kept.ToHost()[image];
    EXPECT_LE(number, most);
    each.emplace_back(begin, begin + number);
    EXPECT_EQ(std::vector<int32_t>(begin + number, begin + most),
              std::vector<int32_t>(most - number, -1));
  }
  return each;
}

std::vector<int32_t> Keep(const Candidates& candidates, float iou_threshold,
                          int max_kept = kAll) {
  return KeepOfEach({candidates}, iou_threshold, max_kept)[0];
}

class NmsCudaTest : public DeviceTest {};

TEST_F(NmsCudaTest, KeepsTheFixturesProposals) {
  const Fixture fixture("nms");
  Candidates candidates = FromFixture(fixture, "rpn");
  EXPECT_EQ(Keep(candidates, 0.5f), Integers(fixture["plain.keep_0.5"]));
  candidates.groups = Integers(fixture["rpn.ids"]);
  EXPECT_EQ(Keep(candidates, Number(fixture, "rpn.iou_thr")),
            Integers(fixture["rpn.keep"]));
}

TEST_F(NmsCudaTest, BreaksTheFixturesTies) {
  const Fixture fixture("nms");
  EXPECT_EQ(Keep(FromFixture(fixture, "ties"), 0.5f),
            Integers(fixture["ties.keep_0.5"]));
}

// The kernel and the program that computed the fixture both shift the boxes by
// group before they compute IoUs. The shift rounds the coordinates. In this
// fixture, the rounding changes which boxes are kept.
TEST_F(NmsCudaTest, RoundsAsTheFixturesShiftDoes) {
  const Fixture fixture("nms");
  Candidates candidates = FromFixture(fixture, "trap");
  candidates.groups = Integers(fixture["trap.ids"]);
  EXPECT_EQ(Keep(candidates, Number(fixture, "trap.iou_thr")),
            Integers(fixture["trap.keep_reference"]));
}

// The larger counts need several tiles of 64 boxes. The largest count also has
// more sort keys than fit into shared memory at a time.
TEST_F(NmsCudaTest, AgreesWithTheScalarLoop) {
  for (int count : {0, 1, 2, 31, 33, 63, 64, 65, 129, 500, 1100}) {
    for (int num_groups : {1, 5, 80}) {
      for (float threshold : {0.3f, 0.7f}) {
        const Candidates candidates = Crowd(count, num_groups);
        EXPECT_EQ(Keep(candidates, threshold), Reference(candidates, threshold))
            << count << " boxes, " << num_groups << " groups";
      }
    }
  }
}

// With small integer coordinates, many IoUs are exactly 1/2 or 1/3.
TEST_F(NmsCudaTest, AgreesWithTheScalarLoopOnTheThreshold) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> corner(0, 4), side(0, 4);
  for (int round = 0; round < 10; ++round) {
    Candidates candidates;
    for (int i = 0; i < 70; ++i) {
      const float x = corner(random), y = corner(random);
      candidates.Add({x, y, x + side(random), y + side(random)}, i % 9);
    }
    for (float threshold : {0.0f, 0.25f, 1.0f / 3, 0.5f, 2.0f / 3, 1.0f}) {
      EXPECT_EQ(Keep(candidates, threshold), Reference(candidates, threshold));
    }
  }
}

// The IoU of a box and its left half is about 1/2. The threshold is 1/2, too.
// The rounding of shifts and areas therefore decides whether the half is kept.
TEST_F(NmsCudaTest, RoundsAsTheScalarLoopDoes) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> corner(0, 700), side(1, 60);
  for (int num_groups : {1, 80}) {
    Candidates candidates;
    for (int i = 0; i < 300; ++i) {
      const float x = corner(random), y = corner(random), width = side(random);
      const float bottom = y + side(random);
      candidates.Add({x, y, x + width, bottom}, 1, i % num_groups);
      candidates.Add({x, y, x + width / 2, bottom}, 0.5f, i % num_groups);
    }
    EXPECT_EQ(Keep(candidates, 0.5f), Reference(candidates, 0.5f));
  }
}

TEST_F(NmsCudaTest, ImagesDoNotMeet) {
  const std::vector<Candidates> images = {Crowd(100, 5, 1), Crowd(100, 5, 2),
                                          Crowd(100, 5, 3, /*square=*/5)};
  for (int max_kept : {7, 40, kAll}) {
    const auto kept = KeepOfEach(images, 0.5f, max_kept);
    EXPECT_EQ(KeepOfEach(images, 0.5f, max_kept), kept);
    for (size_t i = 0; i < images.size(); ++i) {
      EXPECT_EQ(kept[i], Reference(images[i], 0.5f, max_kept));
    }
  }
}

// Boxes whose group is below 0 are absent, regardless of their other values.
TEST_F(NmsCudaTest, BoxesThatAreNotThereDoNotCount) {
  const Candidates present = Crowd(70, 5);
  Candidates sparse;
  std::vector<int32_t> place;
  for (int i = 0; i < present.count(); ++i) {
    sparse.Add({0, 0, 5000, 5000}, 2, -1);
    sparse.Add({0, 0, 5000, kInf}, kNan, -7);
    place.push_back(sparse.count());
    const float* box = &present.boxes[4 * i];
    sparse.Add({box, box + 4}, present.scores[i], present.groups[i]);
  }
  std::vector<int32_t> expected;
  for (int i : Reference(present, 0.5f)) expected.push_back(place[i]);
  EXPECT_EQ(Keep(sparse, 0.5f), expected);
}

TEST_F(NmsCudaTest, NoBoxIsThere) {
  Candidates candidates = Crowd(70, 5);
  candidates.groups.assign(70, -1);
  EXPECT_TRUE(Keep(candidates, 0.5f).empty());
}

TEST_F(NmsCudaTest, StopsAtTheWantedNumber) {
  const Candidates candidates = Crowd(300, 5);
  const std::vector<int32_t> all = Reference(candidates, 0.7f);
  ASSERT_GT(all.size(), 20);
  for (int max_kept : {0, 1, 8, 20}) {
    EXPECT_EQ(Keep(candidates, 0.7f, max_kept),
              std::vector<int32_t>(all.begin(), all.begin() + max_kept));
  }
}

TEST_F(NmsCudaTest, EqualScoresKeepTheirOrder) {
  Candidates candidates;
  std::vector<int32_t> order;
  for (int i = 0; i < 70; ++i) {
    const float x = 20.0f * i;
    // Minus zero equals zero.
    candidates.Add({x, 0, x + 10, 10}, i % 2 == 0 ? 0.0f : -0.0f);
    order.push_back(i);
  }
  EXPECT_EQ(Keep(candidates, 0.5f), order);
}

TEST_F(NmsCudaTest, ScoresOfBothSignsAreSorted) {
  Candidates candidates;
  int i = 0;
  for (float score : {-3.0f, 2.0f, kNan, 1e-40f, -1e-40f, kInf, 0.0f, 3e38f,
                      -kInf, -2e-30f, -3e38f}) {
    const float x = 20.0f * i++;
    candidates.Add({x, 0, x + 10, 10}, score);
  }
  EXPECT_EQ(Keep(candidates, 0.5f), Reference(candidates, 0.5f));
}

// The IoU of two boxes without area is 0 / 0. This is a NaN, which is not
// greater than any threshold.
TEST_F(NmsCudaTest, BoxesWithoutAreaAreAllKept) {
  Candidates candidates;
  for (int i = 0; i < 20; ++i) candidates.Add({5, 5, 5, 9}, 1.0f - i);
  EXPECT_EQ(Keep(candidates, 0.0f).size(), 20);
}

TEST_F(NmsCudaTest, ValuesThatAreNotFiniteDoNoHarm) {
  for (float poison : {kNan, kInf, -kInf}) {
    Candidates candidates = Crowd(140, 5);
    for (int i = 0; i < 140; i += 3) candidates.boxes[4 * i + i % 4] = poison;
    for (int i = 0; i < 140; i += 5) candidates.scores[i] = poison;
    EXPECT_EQ(Keep(candidates, 0.5f), Reference(candidates, 0.5f));
  }
}

TEST_F(NmsCudaTest, PoisonOfOneImageStaysThere) {
  Candidates poisoned = Crowd(70, 5, 1);
  for (float& value : poisoned.boxes) value = kNan;
  const Candidates clean = Crowd(70, 5, 2);
  EXPECT_EQ(KeepOfEach({poisoned, clean, poisoned}, 0.5f)[1],
            Reference(clean, 0.5f));
}

TEST_F(NmsCudaTest, TooManyBoxesAreRefused) {
  NmsCudaArgs args{};
  args.num_images = 1;
  args.num_boxes = kNmsCudaMaxBoxes + 1;
  EXPECT_EQ(NmsCuda(args, TestStream()).code(),
            absl::StatusCode::kInvalidArgument);
}

// The first boxes are like the proposals of a region proposal network, with one
// group per level of the pyramid. The other boxes are like the detections of a
// box head, with one group per class.
TEST_F(NmsCudaTest, AgreesWithTheScalarLoopOfADetectorsSize) {
  if (Emulated()) GTEST_SKIP() << "too large for the emulator";
  for (const Candidates& candidates :
       {Crowd(4819, 5, 1, 1300), Crowd(20000, 80, 1, 600)}) {
    for (int max_kept : {100, 1000, kAll}) {
      EXPECT_EQ(Keep(candidates, 0.5f, max_kept),
                Reference(candidates, 0.5f, max_kept));
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
