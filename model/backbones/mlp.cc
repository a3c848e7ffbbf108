#include "model/backbones/mlp.h"

namespace sfmamba::backbones {
namespace {

constexpr int kRatio = 4;

}  // namespace

Mlp::Mlp(const weights::StateDict::Scope& scope, int width,
         const at::Tensor& gamma, const layers::LayerOptions& options)
    : fc1_(layers::Linear::Take(scope.Sub("fc1"), width, kRatio * width, true),
           {}, options),
      fc2_(layers::Linear::Take(scope.Sub("fc2"), kRatio * width, width, true),
           gamma, options) {}

}  // namespace sfmamba::backbones
