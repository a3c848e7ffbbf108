#include "model/backbones/mamba_mixer.h"

#include "tests/model/backbones/mixer_cases.h"

namespace sfmamba::backbones {
namespace {

class MambaMixerTest : public MixerTest {};

TEST_P(MambaMixerTest, ScansHalfOfTheChannels) {
  // The number of scanned channels is not a multiple of a vector. The second
  // width gives a rank of 3.
  for (const int width : {18, 38}) {
    for (const model::ScanMode scan :
         {model::ScanMode::kUni, model::ScanMode::kParallelCat,
          model::ScanMode::kParallelAdd}) {
      const auto mixer = Both([&](const auto& scope, const auto& ops) {
        return MambaMixer(scope, width, scan, scope.Take("gamma_1", {width}),
                          ops);
      });
      for (const MixerCase& c : MixerCases()) {
        ExpectEqualMixers(mixer, width, c);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MambaMixerTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
