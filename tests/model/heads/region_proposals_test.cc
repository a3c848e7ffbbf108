#include "model/heads/region_proposals.h"

#include <cmath>
#include <vector>

#include "ATen/ops/equal.h"
#include "ATen/ops/zeros.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/heads/anchors.h"
#include "tests/model/against_reference.h"
#include "tests/model/heads/small_detector.h"
#include "tests/model/implementations.h"

namespace sfmamba::heads {
namespace {

constexpr int kHeight = 256, kWidth = 256;
constexpr int kSide = 64;  // The side of the first level's map.

// Returns a configuration with four candidates per level, in which a box
// suppresses only equal boxes.
model::DetectorConfig Config() {
  model::DetectorConfig config;
  config.channels = 4;
  config.rpn_candidates = 4;
  config.rpn_iou_threshold = 0.999f;
  config.proposals = 100;
  return config;
}

class RegionProposalsTest : public testing::Test {
 protected:
  Proposals Select(const std::vector<at::Tensor>& levels) {
    weights::StateDict weights([](const std::string&, at::IntArrayRef shape) {
      return at::zeros(shape, at::kFloat);
    });
    return RegionProposals(config_, weights.root(), model::Cpu())
        .Select(levels, kHeight, kWidth);
  }
  // Expects that boxes[row] is anchor `index` of the first level at its
  // original place.
  void ExpectAnchor(const at::Tensor& boxes, int64_t row, int64_t index) {
    const model::Box anchor =
        Anchors(4, config_.anchor_scale, config_.anchor_ratios)
            .At(index, kSide);
    EXPECT_FLOAT_EQ(boxes[row][0].item<float>(), anchor.x1) << index;
    EXPECT_FLOAT_EQ(boxes[row][1].item<float>(), anchor.y1) << index;
    EXPECT_FLOAT_EQ(boxes[row][2].item<float>(), anchor.x2) << index;
    EXPECT_FLOAT_EQ(boxes[row][3].item<float>(), anchor.y2) << index;
  }

  const c10::InferenceMode guard_;
  const model::DetectorConfig config_ = Config();
  const int64_t anchors_ = config_.anchor_ratios.size();
  // All deltas are 0, so anchors are not moved.
  const at::Tensor level_ = at::zeros({kSide, kSide, 5 * anchors_}, at::kFloat);
};

TEST_F(RegionProposalsTest, EqualScoresKeepTheAnchorsOrder) {
  // In the middle of the map, no anchor is clipped. All other anchors have
  // lower scores.
  const int64_t y = 32, x = 30;
  level_.narrow(2, 0, anchors_).fill_(-1);
  level_[y].narrow(0, x, 3).narrow(1, 0, anchors_).fill_(1);
  const Proposals proposals = Select({level_});
  ASSERT_EQ(proposals.boxes.size(0), 4);
  for (int64_t i = 0; i < 4; ++i) {
    ExpectAnchor(proposals.boxes, i, (y * kSide + x) * anchors_ + i);
  }
}

TEST_F(RegionProposalsTest, TheBestComeFirstWithTheirScores) {
  const int64_t y = 32, x = 30;
  level_.narrow(2, 0, anchors_).fill_(-1);
  level_[y][x][1].fill_(1);
  level_[y][x + 1][2].fill_(2);
  level_[y][x + 2][0].fill_(0);
  const Proposals proposals = Select({level_});
  ASSERT_EQ(proposals.boxes.size(0), 4);
  ExpectAnchor(proposals.boxes, 0, (y * kSide + x + 1) * anchors_ + 2);
  ExpectAnchor(proposals.boxes, 1, (y * kSide + x) * anchors_ + 1);
  ExpectAnchor(proposals.boxes, 2, (y * kSide + x + 2) * anchors_);
  const float expected[] = {0.880797f, 0.731059f, 0.5f, 0.268941f};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(proposals.scores[i].item<float>(), expected[i], 1e-6);
  }
}

TEST_F(RegionProposalsTest, ABoxWithoutHeightOrWidthIsLeftOut) {
  const int64_t y = 32, x = 30;
  level_.narrow(2, 0, anchors_).fill_(-1);
  const at::Tensor pixel = level_[y][x];
  pixel.narrow(0, 0, anchors_).fill_(1);
  pixel[anchors_].fill_(100);          // Moves the first box out to the right
  pixel[anchors_ + 4 + 1].fill_(100);  // and the second one out at the bottom.
  const Proposals proposals = Select({level_});
  ASSERT_EQ(proposals.boxes.size(0), 2);
  ExpectAnchor(proposals.boxes, 0, (y * kSide + x) * anchors_ + 2);
}

// A box of the second level is halved and then equals a box of the first.
TEST_F(RegionProposalsTest, LevelsDoNotSuppressEachOther) {
  const int64_t y = 32, x = 30;
  level_.narrow(2, 0, anchors_).fill_(-1);
  level_[y][x][0].fill_(2);
  const at::Tensor coarse =
      at::zeros({kSide / 2, kSide / 2, 5 * anchors_}, at::kFloat);
  coarse.narrow(2, 0, anchors_).fill_(-1);
  const at::Tensor pixel = coarse[y / 2][x / 2];
  pixel[0].fill_(1);
  pixel.narrow(0, anchors_ + 2, 2).fill_(-std::log(2.0));
  const Proposals proposals = Select({level_, coarse});
  ASSERT_GE(proposals.boxes.size(0), 2);
  const int64_t anchor = (y * kSide + x) * anchors_;
  ExpectAnchor(proposals.boxes, 0, anchor);
  ExpectAnchor(proposals.boxes, 1, anchor);
}

class RegionProposalsAgainstReferenceTest : public model::AgainstReference {
 protected:
  static Compared<RegionProposals> Make() {
    return Both([](const auto& scope, const auto& ops) {
      return RegionProposals(SmallDetector(), scope, ops);
    });
  }
  static layers::Features Pyramid() {
    return SmallPyramid(/*images=*/1, SmallDetector().channels, /*levels=*/5);
  }
};

INSTANTIATE_TEST_SUITE_P(All, RegionProposalsAgainstReferenceTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

TEST_P(RegionProposalsAgainstReferenceTest, ScoresAndMovesAnchors) {
  const auto rpn = Make();
  layers::Features own;
  for (const at::Tensor& map : Pyramid()) {
    own.push_back(tested().RoiMap(Map(map)));
  }
  const std::vector<at::Tensor> levels = rpn.tested.Forward(own);
  const std::vector<at::Tensor> expected = rpn.reference.Forward(Pyramid());
  ASSERT_EQ(levels.size(), 5);
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(levels[i].scalar_type(), at::kFloat);
    ExpectNear(levels[i], expected[i]);
  }
}

// Both implementations select from the same scores, because rounding could
// change the choice.
TEST_P(RegionProposalsAgainstReferenceTest, SelectsTheSame) {
  const auto rpn = Make();
  const std::vector<at::Tensor> levels = rpn.reference.Forward(Pyramid());
  const auto select = [&](const RegionProposals& own) {
    return own.Select(levels, kSmallDetectorHeight, kSmallDetectorWidth);
  };
  const Proposals own = select(rpn.tested), expected = select(rpn.reference);
  EXPECT_EQ(expected.boxes.size(0), SmallDetector().proposals);
  EXPECT_TRUE(at::equal(own.boxes, expected.boxes));
  EXPECT_TRUE(at::equal(own.scores, expected.scores));
}

}  // namespace
}  // namespace sfmamba::heads
