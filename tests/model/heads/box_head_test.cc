#include "model/heads/box_head.h"

#include "tests/model/against_reference.h"
#include "tests/model/heads/small_detector.h"

namespace sfmamba::heads {
namespace {

class BoxHeadTest : public model::AgainstReference {};

TEST_P(BoxHeadTest, ClassifiesAndMovesRegions) {
  for (const int convs : {0, 2}) {
    for (const bool agnostic : {false, true}) {
      model::DetectorConfig config = SmallDetector();
      config.box_convs = convs;
      config.box_fcs = convs > 0 ? 1 : 2;
      config.class_agnostic_boxes = agnostic;
      const auto head = Both([&](const auto& scope, const auto& ops) {
        return BoxHead(config, kSmallClasses, scope, ops);
      });
      // The convolutions run on at most 50 regions at a time, so 53 regions are
      // split into two parts.
      for (const int64_t regions : {1, 3, 53}) {
        const at::Tensor x =
            model::RandomValues("x", {regions, config.channels, 3, 3});
        const BoxOutput own = head.tested.Forward(tested().RoiMap(Map(x)));
        const BoxOutput expected =
            head.reference.Forward(reference().RoiMap(x));
        EXPECT_EQ(own.logits.scalar_type(), at::kFloat);
        ExpectNear(own.logits, expected.logits);
        ExpectNear(own.deltas, expected.deltas);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BoxHeadTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::heads
