#include "model/heads/feature_pyramid.h"

#include "tests/model/against_reference.h"

namespace sfmamba::heads {
namespace {

class FeaturePyramidTest : public model::AgainstReference {};

TEST_P(FeaturePyramidTest, GivesFiveLevels) {
  const std::vector<int> in_channels = {5, 10, 20, 40};
  const auto neck = Both([&](const auto& scope, const auto& ops) {
    return FeaturePyramid(in_channels, /*channels=*/7, scope, ops);
  });
  for (const int64_t images : {1, 3}) {
    // With a height of 8, the coarsest map has one pixel. With a height of 17,
    // the maps have 17 x 14, 9 x 7, 5 x 4 and 3 x 2 pixels. Their sides are not
    // exact halves, because odd sides are rounded up.
    for (const int64_t side : {8, 17}) {
      layers::Features features, own;
      int64_t height = side, width = side - 3;
      for (size_t i = 0; i < in_channels.size(); ++i) {
        features.push_back(model::RandomValues(
            "in" + std::to_string(i), {images, in_channels[i], height, width}));
        own.push_back(Map(features.back()));
        height = (height + 1) / 2;
        width = (width + 1) / 2;
      }
      const layers::Features pyramid = neck.tested.Forward(own);
      const layers::Features expected = neck.reference.Forward(features);
      ASSERT_EQ(pyramid.size(), 5);
      for (int level = 0; level < 5; ++level) {
        SCOPED_TRACE(level);
        ExpectNear(pyramid[level], expected[level]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FeaturePyramidTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::heads
