#include "model/backbones/normed_stem.h"

namespace sfmamba::backbones {
namespace {

// Takes a StemConvolution that has a bias, but neither a norm nor an
// activation.
layers::StemConvolution TakeFirst(const weights::StateDict::Scope& scope,
                                  int out, int image_size,
                                  const ops::Implementation& implementation) {
  return layers::StemConvolution(
      {scope.Take("weight", {out, 3, 3, 3}), scope.Take("bias", {out})},
      std::nullopt, ops::Activation::kNone, image_size,
      /*feeds_products=*/false, implementation);
}

}  // namespace

layers::Convolution TakeHalving(const weights::StateDict::Scope& scope, int in,
                                int out, int size,
                                const ops::Implementation& implementation) {
  const layers::Convolution::Shape shape{in, out, /*stride=*/2, size};
  return layers::Convolution(
      shape, layers::Convolution::Take(scope, shape, /*bias=*/true),
      std::nullopt, ops::Activation::kNone, implementation);
}

NormedStem::NormedStem(const weights::StateDict::Scope& scope,
                       const Names& names, int width, float eps,
                       model::Nonlinearity activation, int image_size,
                       const ops::Implementation& implementation)
    : implementation_(implementation),
      activation_(activation),
      first_(TakeFirst(scope.Sub(names.conv1), width / 2, image_size,
                       implementation)),
      second_(TakeHalving(scope.Sub(names.conv2), width / 2, width,
                          (image_size + 1) / 2, implementation)),
      second_norm_(scope.Sub(names.norm2), width, implementation, eps) {
  if (names.norm1 != nullptr) {
    first_norm_.emplace(scope.Sub(names.norm1), width / 2, implementation, eps);
  }
}

at::Tensor NormedStem::Forward(const ops::ImageBatch& images) const {
  at::Tensor x = first_.Forward(images);
  if (first_norm_.has_value()) x = first_norm_->ForwardMap(x);
  implementation_.Activate(x, activation_);
  return second_norm_.ForwardMap(second_.Forward(x));
}

}  // namespace sfmamba::backbones
