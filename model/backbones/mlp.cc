#include "model/backbones/mlp.h"

namespace sfmamba {
namespace {

constexpr int kRatio = 4;

}  // namespace

Mlp::Mlp(const StateDict::Scope& scope, int width, const at::Tensor& gamma,
         const LayerOptions& options)
    : fc1_(Linear::Take(scope.Sub("fc1"), width, kRatio * width, true), {},
           options),
      fc2_(Linear::Take(scope.Sub("fc2"), kRatio * width, width, true), gamma,
           options) {}

}  // namespace sfmamba
