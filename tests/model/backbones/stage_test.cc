#include "model/backbones/stage.h"

#include <array>
#include <vector>

#include "tests/model/against_reference.h"
#include "tests/model/backbones/small_backbone.h"

namespace sfmamba::backbones {
namespace {

// Number of images, height and width. With windows of 4 x 4 in stage 3, the
// maps are smaller than a window, exactly one window, and two windows with
// padding.
const std::vector<std::array<int64_t, 3>> kSizes = {
    {1, 1, 1}, {1, 4, 4}, {3, 5, 2}};

class StageTest : public model::AgainstReference {
 protected:
  // Compares stage 3 of both implementations. Each sequence is a row of its
  // own, so no sequences are folded into one row.
  static void ExpectEqualTokenStages(const model::BackboneConfig& config) {
    constexpr int kStage = 2;
    const auto stage = Both([&](const auto& scope, const auto& ops) {
      return TokenStage(scope, kStage, config, ops);
    });
    for (const auto& [images, height, width] : kSizes) {
      const at::Tensor x = model::RandomValues(
          "x", {images, config.width(kStage), height, width});
      const int64_t rows = stage.tested.Sequences(images, height, width);
      ExpectNear(stage.tested.Forward(Map(x), rows),
                 stage.reference.Forward(x, rows));
    }
  }
};

TEST_P(StageTest, OfConvolutions) {
  model::BackboneConfig config = SmallBackbone();
  config.depths[1] = 2;
  const auto stage = Both([&](const auto& scope, const auto& ops) {
    return ConvStage(scope, /*stage=*/1, /*size=*/7, config, ops);
  });
  for (const auto& [images, height, width] : kSizes) {
    const at::Tensor x =
        model::RandomValues("x", {images, config.width(1), height, width});
    ExpectNear(stage.tested.Forward(Map(x.clone())),
               stage.reference.Forward(x.clone()));
  }
}

TEST_P(StageTest, OfTokensWithEachKindOfAuxiliaryTokens) {
  for (const model::Tokens tokens : {model::Tokens::kNone, model::Tokens::kData,
                                     model::Tokens::kLearnable}) {
    model::BackboneConfig config = SmallBackbone();
    config.tokens = tokens;
    ExpectEqualTokenStages(config);
  }
}

TEST_P(StageTest, OfTokensWithLayerScales) {
  model::BackboneConfig config = SmallBackbone();
  config.layer_scale = true;
  ExpectEqualTokenStages(config);
}

TEST_P(StageTest, OfTokensThatLeaveAtEachPlace) {
  for (const model::Discard discard :
       {model::Discard::kBeforeAttention, model::Discard::kAfterFirstAttention,
        model::Discard::kAfterAttention}) {
    model::BackboneConfig config = SmallBackbone();
    config.discard = discard;
    config.depths[2] = 4;  // So that two blocks have attention.
    ExpectEqualTokenStages(config);
  }
}

TEST_P(StageTest, OfWholeMapsAndOfSubWindows) {
  model::BackboneConfig config = SmallBackbone();
  config.window_mode = model::WindowMode::kFull;
  ExpectEqualTokenStages(config);
  config.attention_windows[0] = 2;
  ExpectEqualTokenStages(config);
  config.window_mode = model::WindowMode::kFixed;
  ExpectEqualTokenStages(config);
}

TEST_P(StageTest, FoldsSequencesIntoRows) {
  const model::BackboneConfig config = SmallBackbone();
  const auto stage = Both([&](const auto& scope, const auto& ops) {
    return TokenStage(scope, /*stage=*/2, config, ops);
  });
  // A map of 7 x 5 tokens has 2 x 2 windows of 4 x 4 tokens, so three images
  // have twelve sequences. They are folded into 1, 4 or 6 rows.
  const at::Tensor x = model::RandomValues("x", {3, config.width(2), 7, 5});
  for (const int64_t rows : {1, 4, 6}) {
    ExpectNear(stage.tested.Forward(Map(x), rows),
               stage.reference.Forward(x, rows));
  }
}

INSTANTIATE_TEST_SUITE_P(All, StageTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
