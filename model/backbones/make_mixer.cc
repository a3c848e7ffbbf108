#include "model/backbones/make_mixer.h"

#include <utility>

#include "model/backbones/alternating_scan_mixer.h"
#include "model/backbones/attention.h"
#include "model/backbones/mamba_mixer.h"
#include "model/backbones/vim_mixer.h"

namespace sfmamba::backbones {

std::unique_ptr<Mixer> MakeMixer(const weights::StateDict::Scope& scope,
                                 const model::BackboneConfig& config, int stage,
                                 int block, const at::Tensor& gamma,
                                 const ops::Implementation& implementation) {
  const int width = config.width(stage);
  if (block >= config.mamba_blocks(stage)) {
    return std::make_unique<Attention>(scope, width, config.num_heads[stage],
                                       gamma, implementation);
  }
  if (config.scan == model::ScanMode::kParallelAddVim) {
    // Vim itself scans twice as many channels as the width. This ablation scans
    // only as many channels as the width.
    const VimMixer::Shape shape = {width, /*expand=*/1, /*backward=*/true};
    return std::make_unique<VimMixer>(scope, shape, gamma, implementation);
  }
  auto mixer = std::make_unique<MambaMixer>(scope, width, config.scan, gamma,
                                            implementation);
  const bool gap = config.scan == model::ScanMode::kSeriesGap;
  if (!gap && config.scan != model::ScanMode::kSeries) return mixer;
  // Every second block scans backward.
  const bool reversed = block % 2 == 1;
  return std::make_unique<AlternatingScanMixer>(std::move(mixer), reversed,
                                                gap);
}

}  // namespace sfmamba::backbones
