#include "model/backbones/patch_embed.h"

namespace sfmamba {
namespace {

constexpr double kEps = 1e-4;  // Of the stem only; 1e-5 everywhere else.

Convolution::Shape FirstShape(int in_dim, int image_size) {
  return {3, in_dim, /*stride=*/2, image_size};
}

Convolution::Shape SecondShape(int in_dim, int dim, int image_size) {
  return {in_dim, dim, /*stride=*/2, (image_size + 1) / 2};
}

Weights Take(const StateDict::Scope& scope, const Convolution::Shape& shape) {
  return Convolution::Take(scope, shape, /*bias=*/false);
}

}  // namespace

PatchEmbed::PatchEmbed(const StateDict::Scope& scope, int in_dim, int dim,
                       int image_size, const LayerOptions& options)
    : first_(Take(scope.Sub("conv_down.0"), FirstShape(in_dim, image_size)),
             BatchNorm::Take(scope.Sub("conv_down.1"), in_dim, kEps),
             Activation::kRelu, image_size, options),
      second_(
          SecondShape(in_dim, dim, image_size),
          Take(scope.Sub("conv_down.3"), SecondShape(in_dim, dim, image_size)),
          BatchNorm::Take(scope.Sub("conv_down.4"), dim, kEps),
          Activation::kRelu, options) {}

}  // namespace sfmamba
