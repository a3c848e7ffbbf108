#include "model/backbones/mlp.h"

namespace sfmamba::backbones {
namespace {

constexpr int kRatio = 4;

}  // namespace

Mlp::Mlp(const weights::StateDict::Scope& scope, int width,
         const at::Tensor& gamma, const ops::Implementation& implementation)
    : fc1_({layers::Linear::Take(scope.Sub("fc1"), width, kRatio * width, true),
            {},
            ops::Epilogue::kGelu,
            /*is_output=*/false,
            /*feeds_products=*/true},
           implementation),
      fc2_({layers::Linear::Take(scope.Sub("fc2"), kRatio * width, width, true),
            gamma},
           implementation) {}

}  // namespace sfmamba::backbones
