#include "ATen/ops/layer_norm.h"

#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::ops {
namespace {

class ReferenceLayerNorm : public LayerNormOp {
 public:
  explicit ReferenceLayerNorm(const LayerNormParameters& parameters)
      : gamma_(parameters.gamma),
        beta_(parameters.beta),
        eps_(parameters.eps) {}

  at::Tensor Forward(Residual& x, int64_t length, bool swap) const override {
    at::Tensor& sum = x.Sum();
    if (swap) sum = SwapEnds(sum, length);
    return at::layer_norm(sum, {sum.size(-1)}, gamma_, beta_, eps_);
  }

  at::Tensor ForwardMap(const at::Tensor& map) const override {
    const at::Tensor x = map.permute({0, 2, 3, 1}).contiguous();
    return at::layer_norm(x, {x.size(3)}, gamma_, beta_, eps_)
        .permute({0, 3, 1, 2})
        .contiguous();
  }

 private:
  at::Tensor gamma_, beta_;  // [width]
  float eps_;
};

}  // namespace

std::unique_ptr<LayerNormOp> ReferenceImplementation::MakeLayerNorm(
    const LayerNormParameters& parameters) const {
  return std::make_unique<ReferenceLayerNorm>(parameters);
}

}  // namespace sfmamba::ops
