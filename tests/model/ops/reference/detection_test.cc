// Compares the reference's operators for detectors with tensors of the papers'
// own implementations.
#include <cmath>
#include <string>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/equal.h"
#include "gtest/gtest.h"
#include "tests/model/implementations.h"
#include "tests/testing/fixture.h"

namespace sfmamba::ops {
namespace {

class ReferenceRoiAlignTest : public testing::Test {
 protected:
  ReferenceRoiAlignTest() {
    for (const char* level : {"0", "1", "2", "3"}) {
      maps_.push_back(model::Reference().RoiMap(
          fixture_[std::string("extract.feat.") + level])[0]);
    }
  }

  at::Tensor Align(const at::Tensor& rois, int size) const {
    return model::Reference().RoiAlign(maps_, {4, 8, 16, 32}, rois, size, 56);
  }

  const Fixture fixture_{"roi_extractor"};
  std::vector<at::Tensor> maps_;
  // The boxes without the image's index.
  const at::Tensor rois_ = fixture_["extract.rois"].narrow(1, 1, 4);
};

TEST_F(ReferenceRoiAlignTest, GivesTheFeaturesOfRegions) {
  EXPECT_LE(RelativeError(Align(rois_, 7), fixture_["extract.out7"]), 1e-4);
  EXPECT_LE(RelativeError(Align(rois_.narrow(0, 0, 12), 14),
                          fixture_["extract.out14"]),
            1e-4);
}

TEST_F(ReferenceRoiAlignTest, ARegionThatIsNotFiniteHasNoFeatures) {
  for (const float corner : {INFINITY, -INFINITY, NAN}) {
    const at::Tensor rois = rois_.narrow(0, 0, 1).clone();
    rois[0][2].fill_(corner);
    EXPECT_EQ(Align(rois, 7).abs().max().item<float>(), 0) << corner;
  }
}

TEST_F(ReferenceRoiAlignTest, RefusesMapsInAnotherOrder) {
  maps_[2] = maps_[2].contiguous();
  EXPECT_THROW(Align(rois_, 7), c10::Error);
}

TEST(ReferenceNmsTest, KeepsTheBoxes) {
  const Fixture fixture("nms");
  const at::Tensor boxes = fixture["rpn.boxes"], scores = fixture["rpn.scores"];
  const at::Tensor groups = fixture["rpn.ids"].to(at::kInt);
  EXPECT_TRUE(at::equal(model::Reference().Nms(boxes, scores, groups, 0.7f,
                                               /*max_kept=*/1000),
                        fixture["rpn.keep"]));
  EXPECT_TRUE(at::equal(model::Reference().Nms(boxes, scores, {}, 0.5f, 20),
                        fixture["plain.keep_0.5"].narrow(0, 0, 20)));
}

// The shifted boxes are rounded to fp32. In some cases, this decides which
// boxes remain.
TEST(ReferenceNmsTest, RoundsTheShiftOfGroups) {
  const Fixture fixture("nms");
  EXPECT_TRUE(at::equal(
      model::Reference().Nms(fixture["trap.boxes"], fixture["trap.scores"],
                             fixture["trap.ids"].to(at::kInt),
                             fixture["trap.iou_thr"].item<float>(), 1000),
      fixture["trap.keep_reference"]));
}

}  // namespace
}  // namespace sfmamba::ops
