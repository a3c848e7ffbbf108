#include "model/backbones/backbone.h"

#include "model/backbones/hybrid_backbone.h"
#include "model/backbones/vim_backbone.h"

namespace sfmamba {

std::unique_ptr<Backbone> MakeBackbone(const BackboneConfig& config,
                                       int image_size,
                                       const StateDict::Scope& scope,
                                       const LayerOptions& options) {
  if (config.architecture == Architecture::kVim) {
    return std::make_unique<VimBackbone>(config, image_size, scope, options);
  }
  return std::make_unique<HybridBackbone>(config, image_size, scope, options);
}

}  // namespace sfmamba
