#include "model/heads/pyramid_fusion.h"

#include <string>

#include "tests/model/against_reference.h"

namespace sfmamba::heads {
namespace {

class PyramidFusionTest : public model::AgainstReference {};

TEST_P(PyramidFusionTest, ResizesConcatenatesAndConvolves) {
  const std::vector<int> channels = {5, 3, 10};
  const auto fusion = Both([&](const auto& scope, const auto& ops) {
    return PyramidFusion(channels, /*out_channels=*/11, /*size=*/9, scope, ops);
  });
  for (const int64_t images : {1, 3}) {
    // The maps are resized from one pixel, and from more.
    for (const int64_t side : {1, 3, 9}) {
      std::vector<at::Tensor> maps, own;
      for (size_t i = 0; i < channels.size(); ++i) {
        const int64_t height = i == 0 ? 9 : side;
        maps.push_back(
            model::RandomValues("map" + std::to_string(i),
                                {images, channels[i], height, height + 2}));
        own.push_back(Map(maps.back()));
      }
      ExpectNear(fusion.tested.Forward(own), fusion.reference.Forward(maps));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PyramidFusionTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::heads
