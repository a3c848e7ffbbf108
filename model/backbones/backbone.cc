#include "model/backbones/backbone.h"

#include "model/backbones/efficient_vim_backbone.h"
#include "model/backbones/hybrid_backbone.h"
#include "model/backbones/mamba_out_backbone.h"
#include "model/backbones/vim_backbone.h"
#include "model/backbones/vmamba_backbone.h"

namespace sfmamba::backbones {

std::unique_ptr<Backbone> MakeBackbone(
    const model::BackboneConfig& config, int image_size, FeatureMaps maps,
    const weights::StateDict::Scope& scope,
    const ops::Implementation& implementation) {
  switch (config.architecture) {
    case model::Architecture::kVim:
      return std::make_unique<VimBackbone>(config, image_size, scope,
                                           implementation);
    case model::Architecture::kMambaOut:
      return std::make_unique<MambaOutBackbone>(config, image_size, maps, scope,
                                                implementation);
    case model::Architecture::kEfficientVim:
      return std::make_unique<EfficientVimBackbone>(config, image_size, maps,
                                                    scope, implementation);
    case model::Architecture::kVMamba:
      return std::make_unique<VMambaBackbone>(config, image_size, maps, scope,
                                              implementation);
    case model::Architecture::kHybrid:
      break;
  }
  return std::make_unique<HybridBackbone>(config, image_size, maps, scope,
                                          implementation);
}

}  // namespace sfmamba::backbones
