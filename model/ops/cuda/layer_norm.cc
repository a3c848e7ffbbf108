#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "model/ops/cuda/cuda_implementation.h"

namespace sfmamba::ops {
namespace {

class CudaLayerNorm : public LayerNormOp {
 public:
  CudaLayerNorm(const DeviceOps& device, const LayerNormParameters& parameters,
                at::ScalarType type)
      : device_(device),
        gamma_(parameters.gamma),
        beta_(parameters.beta),
        eps_(parameters.eps),
        type_(type) {}

  at::Tensor Forward(Residual& x, int64_t length, bool swap) const override {
    auto [sum, waiting] = x.TakeParts();
    const at::Tensor y = at::empty_like(sum, sum.options().dtype(type_));
    device_.LayerNorm(sum, waiting, gamma_, beta_, eps_, length, swap, y);
    return y;
  }

  // The kernel does not write the sum x + add back to x. It writes the sum only
  // for the tokens to keep, [first, first + count) of each row, to new memory.
  at::Tensor ForwardKeeping(Residual& x, int64_t first,
                            int64_t count) const override {
    const auto [sum, waiting] = x.TakeParts();
    const at::Tensor y = at::empty_like(sum, sum.options().dtype(type_));
    const at::Tensor kept =
        at::empty({sum.size(0), count, sum.size(2)}, sum.options());
    device_.LayerNormKeeping(sum, waiting, gamma_, beta_, eps_, first, kept, y);
    x = Residual(kept);
    return y;
  }

  at::Tensor ForwardMap(const at::Tensor& map) const override {
    // In channels-last memory, the channels of a pixel form a token.
    at::Tensor x = map.permute({0, 2, 3, 1}).to(at::kFloat).contiguous();
    const at::Tensor y = at::empty_like(x);
    device_.LayerNorm(x, /*add=*/{}, gamma_, beta_, eps_, /*length=*/1,
                      /*swap=*/false, y);
    return y.permute({0, 3, 1, 2});
  }

 private:
  const DeviceOps& device_;
  at::Tensor gamma_, beta_;  // [width]
  float eps_;
  at::ScalarType type_;  // The type of Forward()'s results.
};

}  // namespace

std::unique_ptr<LayerNormOp> CudaImplementation::MakeLayerNorm(
    const LayerNormParameters& parameters) const {
  return std::make_unique<CudaLayerNorm>(device_, parameters,
                                         TypeOf(/*is_output=*/false));
}

}  // namespace sfmamba::ops
