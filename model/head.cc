#include "model/head.h"

#include "model/classification_head.h"

namespace sfmamba {

std::unique_ptr<Head> MakeHead(const ModelConfig& config,
                               const StateDict::Scope& scope,
                               const LayerOptions& options) {
  return std::make_unique<ClassificationHead>(config, scope, options);
}

}  // namespace sfmamba
