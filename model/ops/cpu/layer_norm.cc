#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/ops.h"

namespace sfmamba::ops {
namespace {

class CpuLayerNorm : public LayerNormOp {
 public:
  // The normalised tokens have type `type` if the residual stream is fp32.
  // Otherwise they have the stream's type.
  CpuLayerNorm(const LayerNormParameters& parameters, at::ScalarType type)
      : gamma_(parameters.gamma),
        beta_(parameters.beta),
        eps_(parameters.eps),
        type_(type) {}

  at::Tensor Forward(Residual& x, int64_t length, bool swap) const override {
    at::Tensor& sum = x.Sum();
    return LayerNorm(
        sum, gamma_, beta_, eps_, length, swap,
        sum.scalar_type() == at::kFloat ? type_ : sum.scalar_type());
  }

  at::Tensor ForwardMap(const at::Tensor& map) const override {
    // In channels-last memory, the channels of a pixel form a token.
    at::Tensor x = map.permute({0, 2, 3, 1}).to(at::kFloat).contiguous();
    return LayerNorm(x, gamma_, beta_, eps_, /*length=*/1, /*swap=*/false,
                     at::kFloat)
        .permute({0, 3, 1, 2});
  }

 private:
  at::Tensor gamma_, beta_;  // [width]
  float eps_;
  at::ScalarType type_;
};

}  // namespace

std::unique_ptr<LayerNormOp> CpuImplementation::MakeLayerNorm(
    const LayerNormParameters& parameters) const {
  return std::make_unique<CpuLayerNorm>(parameters, products_);
}

}  // namespace sfmamba::ops
