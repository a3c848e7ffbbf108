// Compares every implementation's operators for dense heads with the
// reference's, at odd sizes.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/upsample_bilinear2d.h"
#include "model/ops/implementation.h"
#include "tests/model/against_reference.h"

namespace sfmamba::ops {
namespace {

class DenseOperatorsTest : public model::AgainstReference {};

INSTANTIATE_TEST_SUITE_P(All, DenseOperatorsTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

// Returns boxes [count, 4] in 64 x 64 pixels. Their sides have up to 32 pixels.
at::Tensor RandomBoxes(int64_t count) {
  const at::Tensor corner =
      (model::RandomValues("corner", {count, 2}) + 2) * 10;
  const at::Tensor size = (model::RandomValues("size", {count, 2}) + 2) * 7;
  return at::cat({corner, corner + size}, 1);
}

TEST_P(DenseOperatorsTest, RoiMapKeepsValues) {
  const at::Tensor map = model::RandomValues("map", {3, 5, 7, 3});
  ExpectNear(tested().RoiMap(Map(map)), reference().RoiMap(map));
}

// Returns regions on each level, regions on edges and outside the picture, and
// empty regions.
at::Tensor OddRegions() {
  return at::tensor({0.,  0.,  96., 64., 3.,   5.,   10.,  9.,    //
                     20., 10., 75., 60., 90.,  60.,  96.,  64.,   //
                     -9., -7., 4.,  5.,  -40., -40., -30., -20.,  //
                     7.,  7.,  7.,  20., 30.,  30.,  20.,  20.},
                    at::kFloat)
      .view({-1, 4});
}

TEST_P(DenseOperatorsTest, RoiAlign) {
  const std::vector<int> strides = {4, 8, 16, 32};
  for (const int64_t channels : {1, 5, 18}) {
    std::vector<at::Tensor> maps, own;
    for (size_t i = 0; i < strides.size(); ++i) {
      const at::Tensor map =
          model::RandomValues("map" + std::to_string(i),
                              {1, channels, (64 + strides[i] - 1) / strides[i],
                               (97 + strides[i] - 1) / strides[i]});
      maps.push_back(reference().RoiMap(map)[0]);
      own.push_back(tested().RoiMap(Map(map))[0]);
    }
    for (const at::Tensor& rois : {OddRegions(), OddRegions().narrow(0, 0, 1),
                                   RandomBoxes(17), at::empty({0, 4})}) {
      for (const int size : {1, 3, 7}) {
        // Regions of less than 24 x 24 pixels are read from the finest level.
        // The limit is twice `finest_scale`.
        const auto align = [&](const Implementation& ops, const auto& maps) {
          return ops.RoiAlign(maps, strides, rois, size, /*finest_scale=*/12);
        };
        const at::Tensor features = align(tested(), own);
        ExpectNear(features, align(reference(), maps));
        EXPECT_TRUE(features.is_contiguous(at::MemoryFormat::ChannelsLast));
      }
    }
  }
}

TEST_P(DenseOperatorsTest, Nms) {
  for (const int64_t count : {0, 1, 3, 70, 200}) {
    const at::Tensor boxes = RandomBoxes(count);
    const at::Tensor scores = model::RandomValues("scores", {count});
    const at::Tensor ties = (scores * 3).round();
    const at::Tensor groups =
        (model::RandomValues("groups", {count}) * 2 + 4).to(at::kInt);
    for (const at::Tensor& own_scores : {scores, ties}) {
      for (const at::Tensor& own_groups : {groups, at::Tensor()}) {
        for (const float threshold : {0.0f, 0.3f, 1.0f}) {
          for (const int64_t max_kept : {1, 1000}) {
            const auto kept = [&](const Implementation& ops) {
              return ops.Nms(boxes, own_scores, own_groups, threshold,
                             max_kept);
            };
            EXPECT_TRUE(at::equal(kept(tested()), kept(reference())))
                << count << " boxes, threshold " << threshold;
          }
        }
      }
    }
  }
}

TEST_P(DenseOperatorsTest, NmsOfEqualAndEmptyBoxes) {
  const at::Tensor boxes =
      at::tensor({2., 2., 9., 9., 2., 2., 9., 9., 5., 5., 5., 5.,  //
                  5., 5., 5., 5., 2., 2., 9., 5.5},
                 at::kFloat)
          .view({-1, 4});
  const at::Tensor scores = at::tensor({1., 1., 1., 1., 2.}, at::kFloat);
  for (const float threshold : {0.4f, 0.5f, 0.6f}) {
    EXPECT_TRUE(at::equal(tested().Nms(boxes, scores, {}, threshold, 9),
                          reference().Nms(boxes, scores, {}, threshold, 9)))
        << threshold;
  }
}

// A case has the sizes of the logits, of the network's input and of the
// picture.
struct ClassMapCase {
  int64_t classes, height, width;
  int input_height, input_width, picture_height, picture_width;
};

model::Segmentation ClassMap(const Implementation& ops,
                             const at::Tensor& logits, const ClassMapCase& c,
                             bool confidence) {
  model::Segmentation map;
  map.height = c.picture_height;
  map.width = c.picture_width;
  ops.SegmentationArgmax(logits, c.input_height, c.input_width, confidence,
                         &map);
  return map;
}

at::Tensor Resized(const at::Tensor& x, int64_t height, int64_t width) {
  return at::upsample_bilinear2d(x, {height, width}, /*align_corners=*/false);
}

// If two logits differ only by the rounding of fp32, the labels may differ.
TEST_P(DenseOperatorsTest, ClassMap) {
  for (const ClassMapCase& c :
       std::vector<ClassMapCase>{{1, 1, 1, 1, 1, 1, 1},
                                 {7, 1, 1, 3, 2, 5, 7},
                                 {7, 5, 9, 20, 33, 13, 41},
                                 {19, 5, 9, 20, 33, 20, 33},
                                 {3, 4, 4, 4, 4, 4, 4}}) {
    const at::Tensor logits =
        model::RandomValues("logits", {1, c.classes, c.height, c.width})
            .contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor resized =
        Resized(Resized(logits, c.input_height, c.input_width),
                c.picture_height, c.picture_width)[0];
    for (const bool confidence : {false, true}) {
      const model::Segmentation own =
          ClassMap(tested(), logits[0], c, confidence);
      const model::Segmentation expected =
          ClassMap(reference(), logits[0], c, confidence);
      ASSERT_EQ(own.labels.size(), expected.labels.size());
      ASSERT_EQ(own.confidence.size(), expected.confidence.size());
      std::vector<int64_t> areas(c.classes);
      for (size_t i = 0; i < own.labels.size(); ++i) {
        ++areas.at(own.labels[i]);
        const at::Tensor pixel =
            resized.select(1, i / own.width).select(1, i % own.width);
        const float margin = pixel[expected.labels[i]].item<float>() -
                             pixel[own.labels[i]].item<float>();
        EXPECT_LE(std::abs(margin), 2e-5) << i;
        if (confidence) {
          EXPECT_NEAR(own.confidence[i], expected.confidence[i], 1) << i;
        }
      }
      EXPECT_EQ(own.areas, areas);
    }
  }
}

TEST_P(DenseOperatorsTest, ClassMapOfTiesAndNoNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  // The logits of four pixels with three classes each.
  const at::Tensor logits = at::tensor({1., 2., 2., nan, 0., 1., nan, nan, nan,
                                        -infinity, -infinity, -infinity},
                                       at::kFloat)
                                .view({1, 4, 3})
                                .permute({2, 0, 1});
  const ClassMapCase c{3, 1, 4, 1, 4, 1, 4};
  const model::Segmentation own = ClassMap(tested(), logits, c, true);
  const model::Segmentation expected = ClassMap(reference(), logits, c, true);
  EXPECT_EQ(expected.labels, (std::vector<uint16_t>{1, 2, 0, 0}));
  EXPECT_EQ(own.labels, expected.labels);
  EXPECT_EQ(own.confidence, expected.confidence);
  EXPECT_EQ(own.areas, expected.areas);
}

}  // namespace
}  // namespace sfmamba::ops
