#include "model/backbones/mamba_mixer.h"

#include "tests/model/backbones/mixer_cases.h"

namespace sfmamba::backbones {
namespace {

class MambaMixerTest : public MixerTest {};

TEST_P(MambaMixerTest, ScansHalfOfTheChannels) {
  // The numbers of scanned channels are 9 and 19, which are not multiples of a
  // SIMD vector's length. The projections of dt have the ranks 2 and 3.
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
