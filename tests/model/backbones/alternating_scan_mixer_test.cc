#include "model/backbones/alternating_scan_mixer.h"

#include <memory>

#include "model/backbones/mamba_mixer.h"
#include "tests/model/backbones/mixer_cases.h"

namespace sfmamba::backbones {
namespace {

class AlternatingScanMixerTest : public MixerTest {};

TEST_P(AlternatingScanMixerTest, ReversesSequencesAndLeadsWithTheirMean) {
  constexpr int kWidth = 18;
  for (const bool reversed : {false, true}) {
    for (const bool mean_token : {false, true}) {
      const auto mixer = Both([&](const auto& scope, const auto& ops) {
        return AlternatingScanMixer(
            std::make_unique<MambaMixer>(
                scope, kWidth, model::ScanMode::kSeries, at::Tensor(), ops),
            reversed, mean_token);
      });
      for (const MixerCase& c : MixerCases()) {
        ExpectEqualMixers(mixer, kWidth, c);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AlternatingScanMixerTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
