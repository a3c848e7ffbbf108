#include <string>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/core/Tensor.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/flip.h"
#include "ATen/ops/zeros_like.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "model/ops/cpu/answer_ops.h"
#include "model/ops/cpu/ops.h"
#include "tests/testing/fixture.h"

namespace sfmamba::ops {
namespace {

at::Tensor ChannelsLast(const at::Tensor& map) {
  return map.permute({1, 2, 0}).contiguous().permute({2, 0, 1});
}

class RoiAlignOpTest : public testing::Test {
 protected:
  RoiAlignOpTest() {
    for (const char* level : {"0", "1", "2", "3"}) {
      maps_.push_back(
          ChannelsLast(fixture_[std::string("extract.feat.") + level][0]));
    }
  }

  at::Tensor Align(const at::Tensor& rois, int size) const {
    return ops::RoiAlign(maps_, {4, 8, 16, 32}, rois, size, 56);
  }

  const Fixture fixture_{"roi_extractor"};
  std::vector<at::Tensor> maps_;
  // The boxes without the image's index. Their rows are 5 values apart.
  const at::Tensor rois_ = fixture_["extract.rois"].narrow(1, 1, 4);
};

TEST_F(RoiAlignOpTest, AgreesWithTheReferenceOnAnyThreads) {
  const int threads = at::get_num_threads();
  const at::Tensor first = Align(rois_, 7);
  EXPECT_LE(RelativeError(first, fixture_["extract.out7"]), 1e-4);
  for (int count : {1, 2, 5}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(Align(rois_, 7), first)) << count;
  }
  at::set_num_threads(threads);
}

TEST_F(RoiAlignOpTest, GivesChannelsLast) {
  const at::Tensor out = Align(rois_.narrow(0, 0, 12), 14);
  EXPECT_LE(RelativeError(out, fixture_["extract.out14"]), 1e-4);
  EXPECT_TRUE(out.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST_F(RoiAlignOpTest, NoRegionsGiveNoFeatures) {
  EXPECT_EQ(Align(at::empty({0, 4}), 7).sizes(), at::IntArrayRef({0, 2, 7, 7}));
}

TEST_F(RoiAlignOpTest, RefusesMapsInAnotherOrder) {
  maps_[2] = maps_[2].contiguous();
  EXPECT_THROW(Align(rois_, 7), c10::Error);
}

TEST(NormalizeImageOpTest, MakesTheDetectorsReferenceBatch) {
  const Fixture fixture("preprocess");
  const model::ModelConfig config =
      *model::VariantConfig("sf_mamba_t", model::VisionTask::kDetection);
  const at::Tensor batch = fixture["batch"];  // [2, 3, H, W]
  for (int i : {0, 1}) {
    const at::Tensor rgb =
        fixture["resized_bgr." + std::to_string(i)].flip(2).contiguous();
    at::Tensor image = at::zeros_like(batch[i]);
    ops::NormalizeImage(
        rgb.const_data_ptr<uint8_t>(), /*plane=*/0, config.mean, config.std,
        image.narrow(1, 0, rgb.size(0)).narrow(2, 0, rgb.size(1)));
    EXPECT_LE(RelativeError(image, batch[i]), 1e-4) << i;
    EXPECT_EQ(batch.size(2), config.Padded(133));
    EXPECT_EQ(batch.size(3), config.Padded(107));
  }
}

TEST(NmsOpTest, AgreesWithTheReference) {
  const Fixture fixture("nms");
  const at::Tensor boxes = fixture["rpn.boxes"], scores = fixture["rpn.scores"];
  const at::Tensor all = ops::Nms(
      boxes, scores, fixture["rpn.ids"].to(at::kInt), /*iou_threshold=*/0.7f,
      /*max_kept=*/1000);
  EXPECT_TRUE(at::equal(all, fixture["rpn.keep"]));
  const at::Tensor plain = ops::Nms(boxes, scores, {}, 0.5f, 20);
  EXPECT_TRUE(at::equal(plain, fixture["plain.keep_0.5"].narrow(0, 0, 20)));
}

TEST(NmsOpTest, ReadsColumnsOfWiderTensors) {
  const Fixture fixture("nms");
  const at::Tensor dets = fixture["rpn.dets"];  // [n, 5], after suppression.
  const at::Tensor kept =
      ops::Nms(dets.narrow(1, 0, 4), dets.select(1, 4), {}, 1.0f, 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(kept.const_data_ptr<int64_t>()[i], i);
}

TEST(NmsOpTest, NoBoxesGiveNoIndices) {
  EXPECT_EQ(ops::Nms(at::empty({0, 4}), at::empty({0}), {}, 0.5f, 10).numel(),
            0);
}

}  // namespace
}  // namespace sfmamba::ops
