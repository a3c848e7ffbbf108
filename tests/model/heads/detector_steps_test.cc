// Compares the detectors' parts, one after another, with the reference's
// intermediate results.

#include "ATen/TensorOperators.h"
#include "ATen/ops/full.h"
#include "ATen/ops/sigmoid.h"
#include "ATen/ops/zeros.h"
#include "model/heads/box_coder.h"
#include "tests/model/heads/detector_fixture.h"
#include "tests/model/implementations.h"

namespace sfmamba::heads {
namespace {

// Returns the rows of image `i`. Each row of `rois` contains the image's index
// and a box.
at::Tensor RowsOf(const at::Tensor& rows, const at::Tensor& rois, int64_t i) {
  return rows.index_select(0, (rois.select(1, 0) == i).nonzero().squeeze(1));
}

// Returns the boxes of image `i` among `rois`.
at::Tensor RoisOf(const at::Tensor& rois, int64_t i) {
  return RowsOf(rois, rois, i).narrow(1, 1, 4).contiguous();
}

// Compares the intermediate results image by image.
class DetectorStepsTest : public DetectorFixture {
 protected:
  weights::StateDict weights_{Weights(fixture_, config_)};
  const FeaturePyramid neck_{kInChannels, config_.channels,
                             weights_.root().Sub("neck"), model::Cpu()};
  const RegionProposals rpn_{config_, weights_.root().Sub("rpn_head"),
                             model::Cpu()};
  const RoiHead roi_{config_, kClasses, weights_.root().Sub("roi_head"),
                     model::Cpu()};
};

INSTANTIATE_TEST_SUITE_P(Detectors, DetectorStepsTest,
                         testing::Values(CascadeMaskRcnn(), MaskRcnn()),
                         [](const auto& info) { return info.param.fixture; });

TEST_P(DetectorStepsTest, ProposalsAreTheReferences) {
  for (int i = 0; i < 2; ++i) {
    const layers::Features pyramid = neck_.Forward(Only(features_, i));
    const std::vector<at::Tensor> levels = rpn_.Forward(pyramid);
    for (int level = 0; level < 5; ++level) {
      const std::string number = std::to_string(level);
      EXPECT_LE(
          RelativeError(pyramid[level][0], fixture_["out.fpn." + number][i]),
          kTolerance);
      const at::Tensor maps = levels[level].permute({2, 0, 1});
      EXPECT_LE(RelativeError(maps.narrow(0, 0, 3),
                              fixture_["out.rpn_cls." + number][i]),
                kTolerance);
      EXPECT_LE(RelativeError(maps.narrow(0, 3, 12),
                              fixture_["out.rpn_reg." + number][i]),
                kTolerance);
    }
    const Proposals proposals =
        rpn_.Select(levels, images_[i].height, images_[i].width);
    const at::Tensor expected = fixture_["out.proposals." + std::to_string(i)];
    EXPECT_LE(RelativeError(proposals.boxes, expected.narrow(1, 0, 4)),
              kTolerance);
    EXPECT_LE(RelativeError(proposals.scores, expected.select(1, 4)),
              kTolerance);
  }
}

TEST_P(DetectorStepsTest, StagesAreTheReferences) {
  for (int i = 0; i < 2; ++i) {
    const layers::Features pyramid = neck_.Forward(Only(features_, i));
    for (int stage = 0; stage < roi_.stages(); ++stage) {
      const std::string prefix = "out.stage" + std::to_string(stage) + ".";
      const at::Tensor all = fixture_[prefix + "rois"];
      const at::Tensor rois = RoisOf(all, i);
      const BoxOutput output = roi_.ForwardBoxes(stage, pyramid, rois);
      EXPECT_LE(RelativeError(output.logits,
                              RowsOf(fixture_[prefix + "cls_score"], all, i)),
                kTolerance);
      EXPECT_LE(RelativeError(output.deltas,
                              RowsOf(fixture_[prefix + "bbox_pred"], all, i)),
                kTolerance);
      if (stage + 1 == roi_.stages()) break;
      const at::Tensor next =
          fixture_["out.stage" + std::to_string(stage + 1) + ".rois"];
      EXPECT_LE(RelativeError(RefineBoxes(rois, output.logits, output.deltas,
                                          config_.box_stds[stage],
                                          images_[i].height, images_[i].width),
                              RoisOf(next, i)),
                kTolerance);
    }
  }
}

TEST_P(DetectorStepsTest, MasksAreTheReferences) {
  const at::Tensor all = fixture_["out.mask_rois"];
  for (int i = 0; i < 2; ++i) {
    const layers::Features pyramid = neck_.Forward(Only(features_, i));
    const std::vector<at::Tensor> logits = roi_.ForwardMasks(
        pyramid, RoisOf(all, i), fixture_["out.labels." + std::to_string(i)]);
    at::Tensor sum = at::sigmoid(logits[0]);
    for (size_t k = 1; k < logits.size(); ++k) sum += at::sigmoid(logits[k]);
    EXPECT_LE(RelativeError(sum / static_cast<double>(logits.size()),
                            RowsOf(fixture_["out.mask_prob"], all, i)),
              kTolerance);
  }
  // Compares all classes of the first two regions.
  const layers::Features pyramid = neck_.Forward(Only(features_, 0));
  const at::Tensor rois = RoisOf(all, 0).narrow(0, 0, 2);
  for (int64_t label = 0; label < kClasses; ++label) {
    const std::vector<at::Tensor> logits =
        roi_.ForwardMasks(pyramid, rois, at::full({2}, label, at::kLong));
    for (int stage = 0; stage < roi_.stages(); ++stage) {
      const std::string key =
          roi_.stages() > 1 ? "out.mask_logit.stage" + std::to_string(stage)
                            : "out.mask_logit";
      EXPECT_LE(RelativeError(logits[stage], fixture_[key].select(1, label)),
                kTolerance);
    }
  }
}

TEST_P(DetectorStepsTest, RegionsOfNoSizeAreAnswered) {
  const layers::Features pyramid = neck_.Forward(Only(features_, 0));
  const at::Tensor rois = at::zeros({2, 4}, at::kFloat);
  rois[1].fill_(30);
  const BoxOutput output = roi_.ForwardBoxes(0, pyramid, rois);
  EXPECT_TRUE(output.logits.isfinite().all().item<bool>());
  // Both regions read only zeros, so their outputs are equal.
  EXPECT_TRUE(output.logits[0].equal(output.logits[1]));
}

}  // namespace
}  // namespace sfmamba::heads
