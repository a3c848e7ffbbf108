#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/ops.h"

namespace sfmamba::ops {
namespace {

class CpuLayerNorm : public LayerNormOp {
 public:
  explicit CpuLayerNorm(const LayerNormParameters& parameters)
      : gamma_(parameters.gamma), beta_(parameters.beta) {}

  at::Tensor Forward(Residual& x, int64_t length, bool swap) const override {
    return LayerNorm(x.Sum(), gamma_, beta_, length, swap);
  }

  at::Tensor ForwardMap(const at::Tensor& map) const override {
    // In channels-last memory, the channels of a pixel form a token.
    at::Tensor x = map.permute({0, 2, 3, 1}).to(at::kFloat).contiguous();
    return LayerNorm(x, gamma_, beta_, /*length=*/1, /*swap=*/false)
        .permute({0, 3, 1, 2});
  }

 private:
  at::Tensor gamma_, beta_;  // [width]
};

}  // namespace

std::unique_ptr<LayerNormOp> CpuImplementation::MakeLayerNorm(
    const LayerNormParameters& parameters) const {
  return std::make_unique<CpuLayerNorm>(parameters);
}

}  // namespace sfmamba::ops
