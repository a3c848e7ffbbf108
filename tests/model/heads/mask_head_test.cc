#include "model/heads/mask_head.h"

#include "ATen/ops/arange.h"
#include "tests/model/against_reference.h"
#include "tests/model/heads/small_detector.h"

namespace sfmamba::heads {
namespace {

class MaskHeadTest : public model::AgainstReference {};

TEST_P(MaskHeadTest, GivesEachRegionsMaskOfItsClass) {
  for (const bool agnostic : {false, true}) {
    model::DetectorConfig config = SmallDetector();
    config.mask_convs = 2;
    config.class_agnostic_masks = agnostic;
    const auto head = Both([&](const auto& scope, const auto& ops) {
      return MaskHead(config, kSmallClasses, scope, ops);
    });
    // The layers run on at most 10 regions at a time, so 13 regions are split
    // into two parts.
    for (const int64_t regions : {1, 3, 13}) {
      const at::Tensor x =
          model::RandomValues("x", {regions, config.channels, 5, 5});
      const at::Tensor labels =
          at::arange(regions, at::kLong).remainder(kSmallClasses);
      const at::Tensor logits =
          head.tested.Forward(tested().RoiMap(Map(x)), labels);
      EXPECT_EQ(logits.scalar_type(), at::kFloat);
      ExpectNear(logits, head.reference.Forward(reference().RoiMap(x), labels));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MaskHeadTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::heads
