#include "model/patch_embed.h"

namespace sfmamba {
namespace {

constexpr double kEps = 1e-4;  // Of the stem only; 1e-5 everywhere else.

Convolution MakeConvolution(const StateDict::Scope& convolution,
                            const StateDict::Scope& norm,
                            const Convolution::Shape& shape,
                            const LayerOptions& options) {
  return Convolution(shape, Convolution::Take(convolution, shape, false),
                     BatchNorm::Take(norm, shape.out, kEps), Activation::kRelu,
                     options);
}

}  // namespace

PatchEmbed::PatchEmbed(const StateDict::Scope& scope, int in_dim, int dim,
                       int image_size, const LayerOptions& options)
    : first_(MakeConvolution(scope.Sub("conv_down.0"), scope.Sub("conv_down.1"),
                             {3, in_dim, /*stride=*/2, image_size}, options)),
      second_(MakeConvolution(
          scope.Sub("conv_down.3"), scope.Sub("conv_down.4"),
          {in_dim, dim, /*stride=*/2, (image_size + 1) / 2}, options)) {}

}  // namespace sfmamba
