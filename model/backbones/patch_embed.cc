#include "model/backbones/patch_embed.h"

namespace sfmamba::backbones {
namespace {

constexpr double kEps = 1e-4;  // Other layers of the backbone use 1e-5.

layers::Convolution::Shape FirstShape(int in_dim, int image_size) {
  return {3, in_dim, /*stride=*/2, image_size};
}

layers::Convolution::Shape SecondShape(int in_dim, int dim, int image_size) {
  return {in_dim, dim, /*stride=*/2, (image_size + 1) / 2};
}

ops::Weights Take(const weights::StateDict::Scope& scope,
                  const layers::Convolution::Shape& shape) {
  return layers::Convolution::Take(scope, shape, /*bias=*/false);
}

}  // namespace

PatchEmbed::PatchEmbed(const weights::StateDict::Scope& scope, int in_dim,
                       int dim, int image_size,
                       const ops::Implementation& implementation)
    : first_(Take(scope.Sub("conv_down.0"), FirstShape(in_dim, image_size)),
             ops::BatchNorm::Take(scope.Sub("conv_down.1"), in_dim, kEps),
             ops::Activation::kRelu, image_size, /*feeds_products=*/true,
             implementation),
      second_(
          SecondShape(in_dim, dim, image_size),
          Take(scope.Sub("conv_down.3"), SecondShape(in_dim, dim, image_size)),
          ops::BatchNorm::Take(scope.Sub("conv_down.4"), dim, kEps),
          ops::Activation::kRelu, implementation) {}

}  // namespace sfmamba::backbones
