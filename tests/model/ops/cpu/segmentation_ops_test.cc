#include <algorithm>
#include <vector>

#include "ATen/Parallel.h"
#include "ATen/core/Tensor.h"
#include "ATen/ops/from_blob.h"
#include "gtest/gtest.h"
#include "model/ops/cpu/answer_ops.h"
#include "model/ops/cpu/ops.h"
#include "model/result.h"
#include "tests/testing/fixture.h"
#include "tests/testing/line_masks.h"

namespace sfmamba::ops {
namespace {

constexpr int kInputHeight = 100, kInputWidth = 136;  // The fixture's size.

// Runs `body` on 1 thread and on 3 threads.
template <typename Body>
void OnThreads(Body body) {
  const int threads = at::get_num_threads();
  for (int count : {1, 3}) {
    at::set_num_threads(count);
    body();
  }
  at::set_num_threads(threads);
}

model::Segmentation Segment(const at::Tensor& logits, int height, int width,
                            bool confidence) {
  model::Segmentation map;
  map.height = height;
  map.width = width;
  ops::SegmentationArgmax(logits, kInputHeight, kInputWidth, confidence, &map);
  return map;
}

TEST(OpsSegmentTest, ClassMapsAgreeWithTheReferenceOnAnyThreads) {
  const Fixture fixture("upernet");
  const at::Tensor logits = fixture["out.logits"][1];
  const at::Tensor expected = fixture["out.pred_ori"][1];
  const int height = expected.size(0), width = expected.size(1);
  const model::Segmentation first = Segment(logits, height, width, true);
  OnThreads([&] {
    const model::Segmentation map = Segment(logits, height, width, true);
    EXPECT_EQ(map.labels, first.labels);
    EXPECT_EQ(map.confidence, first.confidence);
    EXPECT_EQ(map.areas, first.areas);
  });

  std::vector<int64_t> areas(logits.size(0));
  int different = 0;
  for (int p = 0; p < height * width; ++p) {
    ++areas[first.labels[p]];
    different += first.labels[p] != expected.const_data_ptr<uint8_t>()[p];
  }
  EXPECT_LE(different, height * width / 1000);
  EXPECT_EQ(first.areas, areas);
}

TEST(OpsSegmentTest, ClassMapsDoNotDependOnMemoryOrder) {
  const at::Tensor logits = Fixture("upernet")["out.logits"][0];
  const at::Tensor last =
      logits.permute({1, 2, 0}).contiguous().permute({2, 0, 1});
  const model::Segmentation map = Segment(logits, 75, 102, true);
  const model::Segmentation same = Segment(last, 75, 102, true);
  EXPECT_EQ(map.labels, same.labels);
  EXPECT_EQ(map.confidence, same.confidence);
}

TEST(OpsSegmentTest, ConfidenceIsOnlyThereIfAskedFor) {
  const at::Tensor logits = Fixture("upernet")["out.logits"][0];
  const model::Segmentation map = Segment(logits, 75, 102, false);
  EXPECT_TRUE(map.confidence.empty());
  EXPECT_EQ(map.labels, Segment(logits, 75, 102, true).labels);
}

TEST(OpsSegmentTest, MasksAgreeWithTheReference) {
  const Fixture fixture("mask_head");
  const at::Tensor masks = fixture["paste.masks"].select(1, 0);
  const at::Tensor boxes = fixture["paste.boxes"];
  const at::Tensor expected = fixture["paste.binary"];
  const int height = expected.size(1), width = expected.size(2);
  int different = 0;
  for (int64_t i = 0; i < masks.size(0); ++i) {
    const float* corners = boxes.const_data_ptr<float>() + 4 * i;
    const auto pasted = ops::MakeMask(
        masks[i], {corners[0], corners[1], corners[2], corners[3]}, 0.5f,
        height, width);
    const base::Mask mask = PixelsOf(*pasted);
    EXPECT_EQ(mask.data, PixelsByColumns(*pasted).data);
    std::vector<uint8_t> picture(height * width);
    for (int y = 0; y < mask.height; ++y) {
      std::copy_n(&mask.data[y * mask.width], mask.width,
                  &picture[(mask.top + y) * width + mask.left]);
    }
    for (int p = 0; p < height * width; ++p) {
      different += picture[p] != expected[i].const_data_ptr<uint8_t>()[p];
    }
  }
  EXPECT_LE(different, expected.numel() / 1000);
}

TEST(OpsSegmentTest, AMaskOutsideOfThePictureIsEmpty) {
  const at::Tensor masks = Fixture("mask_head")["paste.masks"].select(1, 0);
  const base::Mask mask =
      PixelsOf(*ops::MakeMask(masks[0], {100, 10, 120, 20}, 0.5f, 60, 80));
  EXPECT_EQ(mask.width, 0);
  EXPECT_EQ(mask.height, 0);
  EXPECT_TRUE(mask.data.empty());
}

}  // namespace
}  // namespace sfmamba::ops
