#include "model/backbones/vim_mixer.h"

#include "tests/model/backbones/mixer_cases.h"

namespace sfmamba::backbones {
namespace {

class VimMixerAgainstReferenceTest : public MixerTest {};

TEST_P(VimMixerAgainstReferenceTest, ScansForwardAndBackward) {
  constexpr int kWidth = 19;
  for (const int expand : {1, 2}) {
    for (const bool backward : {false, true}) {
      const auto mixer = Both([&](const auto& scope, const auto& ops) {
        return VimMixer(scope, {kWidth, expand, backward},
                        scope.Take("gamma_1", {kWidth}), ops);
      });
      for (const MixerCase& c : MixerCases()) {
        ExpectEqualMixers(mixer, kWidth, c);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VimMixerAgainstReferenceTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
