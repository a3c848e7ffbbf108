#include "kernels/detection/nms.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/kernels/detection/nms_candidates.h"
#include "tests/kernels/matrix.h"
#include "tests/testing/fixture.h"

namespace sfmamba::kernels {
namespace {

// Returns the indices of the boxes that NmsCpu() keeps with the instruction set
// `isa`.
std::vector<int32_t> Keep(const Candidates& candidates, float iou_threshold,
                          CpuIsa isa, int max_kept = kAll) {
  constexpr int32_t kGuard = -7;
  const int most = std::min(max_kept, candidates.count());
  std::vector<int32_t> kept(most + 1, kGuard);
  const int num_kept =
      NmsCpu(candidates.Args(iou_threshold, max_kept, kept.data()), isa);
  EXPECT_EQ(kept[most], kGuard);
  EXPECT_LE(num_kept, most);
  kept.resize(num_kept);
  return kept;
}

class NmsTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, NmsTest, testing::ValuesIn(SupportedCpuIsas()),
                         IsaName);

TEST_P(NmsTest, KeepsTheFixturesProposals) {
  const Fixture fixture("nms");
  Candidates candidates = FromFixture(fixture, "rpn");
  EXPECT_EQ(Keep(candidates, 0.5f, GetParam()),
            Integers(fixture["plain.keep_0.5"]));
  candidates.groups = Integers(fixture["rpn.ids"]);
  EXPECT_EQ(Keep(candidates, Number(fixture, "rpn.iou_thr"), GetParam()),
            Integers(fixture["rpn.keep"]));
}

TEST_P(NmsTest, BreaksTheFixturesTies) {
  const Fixture fixture("nms");
  EXPECT_EQ(Keep(FromFixture(fixture, "ties"), 0.5f, GetParam()),
            Integers(fixture["ties.keep_0.5"]));
}

// The kernel and the program that computed the fixture both shift the boxes by
// group before they compute IoUs. The shift rounds the coordinates.
TEST_P(NmsTest, RoundsAsTheFixturesShiftDoes) {
  const Fixture fixture("nms");
  Candidates candidates = FromFixture(fixture, "trap");
  candidates.groups = Integers(fixture["trap.ids"]);
  EXPECT_EQ(Keep(candidates, Number(fixture, "trap.iou_thr"), GetParam()),
            Integers(fixture["trap.keep_reference"]));

  // This proves that the fixture depends on the rounding by the shift. If each
  // group is processed alone and without a shift, other boxes are kept.
  std::vector<int32_t> exact;
  for (int group :
       std::set<int>(candidates.groups.begin(), candidates.groups.end())) {
    Candidates alone;
    std::vector<int32_t> inds;
    for (size_t i = 0; i < candidates.groups.size(); ++i) {
      if (candidates.groups[i] != group) continue;
      const float* box = &candidates.boxes[4 * i];
      alone.Add({box, box + 4}, candidates.scores[i]);
      inds.push_back(i);
    }
    for (int i : Keep(alone, Number(fixture, "trap.iou_thr"), GetParam())) {
      exact.push_back(inds[i]);
    }
  }
  EXPECT_THAT(exact, testing::UnorderedElementsAreArray(
                         Integers(fixture["trap.keep_exact_per_class"])));
}

// Selects candidates from the fixture's boxes as a box head does. A row of
// `multi.scores` has the probabilities of a region's classes. Each row and
// class whose probability exceeds the threshold is a candidate.
TEST_P(NmsTest, KeepsTheFixturesDetections) {
  const Fixture fixture("nms");
  const Candidates rows = FromFixture(fixture, "multi");
  const int classes = 5;  // Without the background.
  for (const std::string name : {"multi", "multi4"}) {
    Candidates candidates;
    std::vector<int32_t> inds;
    for (int i = 0; i < 70 * classes; ++i) {
      const int row = i / classes, label = i % classes;
      const float score = rows.scores[row * (classes + 1) + label];
      if (!(score > Number(fixture, "multi.score_thr"))) continue;
      const int column = name == "multi" ? label : 0;
      const float* box = &rows.boxes[(row * classes + column) * 4];
      candidates.Add({box, box + 4}, score, label);
      inds.push_back(i);
    }
    std::vector<int32_t> kept;
    for (int i :
         Keep(candidates, Number(fixture, "multi.iou_thr"), GetParam(), 60)) {
      kept.push_back(inds[i]);
    }
    EXPECT_EQ(kept, Integers(fixture[name + ".inds"]));
  }
}

TEST_P(NmsTest, AgreesWithTheScalarLoop) {
  for (int count : {0, 1, 2, 7, 8, 9, 15, 16, 17, 33, 70, 500}) {
    for (int num_groups : {1, 5, 80}) {
      for (float threshold : {0.0f, 0.3f, 0.5f, 0.7f, 1.0f}) {
        const Candidates candidates = Crowd(count, num_groups);
        EXPECT_EQ(Keep(candidates, threshold, GetParam()),
                  Keep(candidates, threshold, CpuIsa::kScalar));
      }
    }
  }
}

// With small integer coordinates, many IoUs are exactly 1/2 or 1/3.
TEST_P(NmsTest, AgreesWithTheScalarLoopOnTheThreshold) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> corner(0, 4), side(0, 4);
  for (int round = 0; round < 50; ++round) {
    Candidates candidates;
    for (int i = 0; i < 70; ++i) {
      const float x = corner(random), y = corner(random);
      candidates.Add({x, y, x + side(random), y + side(random)}, i % 9);
    }
    for (float threshold : {0.25f, 1.0f / 3, 0.5f, 2.0f / 3}) {
      EXPECT_EQ(Keep(candidates, threshold, GetParam()),
                Keep(candidates, threshold, CpuIsa::kScalar));
    }
  }
}

TEST_P(NmsTest, StopsAtTheWantedNumber) {
  const Candidates candidates = Crowd(500, 5);
  const std::vector<int32_t> all = Keep(candidates, 0.7f, GetParam());
  ASSERT_GT(all.size(), 20);
  for (int max_kept : {0, 1, 8, 20}) {
    EXPECT_EQ(Keep(candidates, 0.7f, GetParam(), max_kept),
              std::vector<int32_t>(all.begin(), all.begin() + max_kept));
  }
}

TEST_P(NmsTest, KeepsTheBestOfEqualBoxes) {
  Candidates candidates;
  for (int i = 0; i < 70; ++i) {
    candidates.Add({1, 2, 11, 12}, i == 40 ? 0.9f : 0.5f);
  }
  EXPECT_EQ(Keep(candidates, 0.5f, GetParam()), std::vector<int32_t>({40}));
}

TEST_P(NmsTest, EqualScoresKeepTheirOrder) {
  Candidates candidates;
  std::vector<int32_t> order;
  for (int i = 0; i < 70; ++i) {
    const float x = 20.0f * i;
    // Minus zero equals zero.
    candidates.Add({x, 0, x + 10, 10}, i % 2 == 0 ? 0.0f : -0.0f);
    order.push_back(i);
  }
  EXPECT_EQ(Keep(candidates, 0.5f, GetParam()), order);
}

// The IoU of two boxes without area is 0 / 0. This is a NaN, which is not
// greater than any threshold.
TEST_P(NmsTest, BoxesWithoutAreaAreAllKept) {
  Candidates candidates;
  for (int i = 0; i < 20; ++i) candidates.Add({5, 5, 5, 9}, 1.0f - i);
  EXPECT_EQ(Keep(candidates, 0.0f, GetParam()).size(), 20);
}

TEST_P(NmsTest, OnlyAGreaterIouStrikesOut) {
  Candidates candidates;
  candidates.Add({0, 0, 2, 1}, 0.9f);
  candidates.Add({0, 0, 1, 1}, 0.8f);  // IoU 1/2.
  EXPECT_EQ(Keep(candidates, 0.5f, GetParam()).size(), 2);
  EXPECT_EQ(Keep(candidates, 0.4999f, GetParam()).size(), 1);
}

TEST_P(NmsTest, GroupsDoNotMeet) {
  Candidates candidates;
  for (int i = 0; i < 40; ++i) {
    candidates.Add({0, 0, 10, 10}, 0.5f, i % 20);
  }
  EXPECT_EQ(Keep(candidates, 0.5f, GetParam()).size(), 20);
}

TEST_P(NmsTest, ValuesThatAreNotFiniteDoNoHarm) {
  for (float poison : {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity()}) {
    Candidates candidates = Crowd(70, 5);
    for (int i = 0; i < 70; i += 3) candidates.boxes[4 * i + i % 4] = poison;
    for (int i = 0; i < 70; i += 5) candidates.scores[i] = poison;
    std::vector<int32_t> kept = Keep(candidates, 0.5f, GetParam());
    EXPECT_EQ(kept, Keep(candidates, 0.5f, CpuIsa::kScalar));
    std::sort(kept.begin(), kept.end());
    EXPECT_EQ(std::unique(kept.begin(), kept.end()), kept.end());
    EXPECT_LT(kept.back(), 70);
  }
}

TEST_P(NmsTest, AScoreThatIsNanComesLast) {
  Candidates candidates;
  candidates.Add({0, 0, 1, 1}, std::numeric_limits<float>::quiet_NaN());
  candidates.Add({5, 0, 6, 1}, -3);
  candidates.Add({9, 0, 10, 1}, 2);
  EXPECT_EQ(Keep(candidates, 0.5f, GetParam()),
            std::vector<int32_t>({2, 1, 0}));
}

}  // namespace
}  // namespace sfmamba::kernels
