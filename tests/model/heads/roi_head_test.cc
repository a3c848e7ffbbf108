#include "model/heads/roi_head.h"

#include "ATen/ops/tensor.h"
#include "tests/model/against_reference.h"
#include "tests/model/heads/small_detector.h"

namespace sfmamba::heads {
namespace {

// Returns regions on several levels, regions at edges, and empty regions.
at::Tensor Regions() {
  return at::tensor({0., 0., 42., 65., 3., 5., 10., 9.,  //
                     20., 10., 41., 60., 7., 7., 7., 20.},
                    at::kFloat)
      .view({-1, 4});
}

class RoiHeadTest : public model::AgainstReference {
 protected:
  // Returns SmallPyramid() in the form of each implementation's FeaturePyramid.
  static Compared<layers::Features> Pyramid() {
    Compared<layers::Features> pyramid;
    for (const at::Tensor& map :
         SmallPyramid(/*images=*/1, SmallDetector().channels, /*levels=*/4)) {
      pyramid.tested.push_back(tested().RoiMap(Map(map)));
      pyramid.reference.push_back(reference().RoiMap(map));
    }
    return pyramid;
  }
};

TEST_P(RoiHeadTest, GivesBoxesAndMasksOfEachStage) {
  const auto head = Both([](const auto& scope, const auto& ops) {
    return RoiHead(SmallDetector(), kSmallClasses, scope, ops);
  });
  const auto pyramid = Pyramid();
  const at::Tensor labels = at::tensor({4, 0, 2, 1}, at::kLong);
  for (const int64_t count : {1, 4}) {
    const at::Tensor rois = Regions().narrow(0, 0, count);
    for (int stage = 0; stage < head.tested.stages(); ++stage) {
      const BoxOutput own =
          head.tested.ForwardBoxes(stage, pyramid.tested, rois);
      const BoxOutput expected =
          head.reference.ForwardBoxes(stage, pyramid.reference, rois);
      ExpectNear(own.logits, expected.logits);
      ExpectNear(own.deltas, expected.deltas);
    }
    const at::Tensor own_labels = labels.narrow(0, 0, count);
    const auto own = head.tested.ForwardMasks(pyramid.tested, rois, own_labels);
    const auto expected =
        head.reference.ForwardMasks(pyramid.reference, rois, own_labels);
    ASSERT_EQ(own.size(), 2);
    for (int stage = 0; stage < 2; ++stage) {
      ExpectNear(own[stage], expected[stage]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RoiHeadTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::heads
