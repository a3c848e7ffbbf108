#include "model/backbone.h"

#include "model/hybrid_backbone.h"

namespace sfmamba {

std::unique_ptr<Backbone> MakeBackbone(const BackboneConfig& config,
                                       int image_size,
                                       const StateDict::Scope& scope,
                                       const LayerOptions& options) {
  return std::make_unique<HybridBackbone>(config, image_size, scope, options);
}

}  // namespace sfmamba
