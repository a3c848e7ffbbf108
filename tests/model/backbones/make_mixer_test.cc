#include "model/backbones/make_mixer.h"

#include <memory>

#include "tests/model/backbones/mixer_cases.h"

namespace sfmamba::backbones {
namespace {

// Calls a mixer through the interface Mixer. The test makes one object for the
// tested implementation and one for the reference implementation.
class MixerOf {
 public:
  explicit MixerOf(std::unique_ptr<Mixer> mixer) : mixer_(std::move(mixer)) {}

  void AddTo(ops::Residual& residual, const at::Tensor& x,
             int64_t length) const {
    mixer_->AddTo(residual, x, length);
  }

 private:
  std::unique_ptr<Mixer> mixer_;
};

class MakeMixerTest : public MixerTest {};

// Stage 3 has two Mamba blocks, followed by an attention block.
TEST_P(MakeMixerTest, OfEachScanModeAndBlock) {
  model::BackboneConfig config;
  config.dim = 5;
  config.depths[2] = 3;
  config.num_heads[2] = 4;
  const int width = config.width(2);
  for (const model::ScanMode scan :
       {model::ScanMode::kUni, model::ScanMode::kSeries,
        model::ScanMode::kSeriesGap, model::ScanMode::kParallelCat,
        model::ScanMode::kParallelAdd, model::ScanMode::kParallelAddVim}) {
    config.scan = scan;
    for (int block = 0; block < config.depths[2]; ++block) {
      const auto mixer = Both([&](const auto& scope, const auto& ops) {
        return MixerOf(MakeMixer(scope, config, /*stage=*/2, block,
                                 scope.Take("gamma_1", {width}), ops));
      });
      ExpectEqualMixers(mixer, width, {3, 1, 7});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MakeMixerTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
