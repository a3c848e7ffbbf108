#include "ATen/TensorOperators.h"
#include "ATen/ops/addmm.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/mm.h"
#include "model/ops/reference/reference_implementation.h"
#include "model/ops/rows.h"

namespace sfmamba::ops {
namespace {

class ReferenceLinear : public LinearOp {
 public:
  explicit ReferenceLinear(const LinearParameters& parameters)
      : weight_(parameters.weights.weight),
        bias_(parameters.weights.bias),
        scale_(parameters.scale),
        epilogue_(parameters.epilogue) {}

  at::Tensor Forward(const at::Tensor& x) const override {
    const at::Tensor rows = AsRows(x);
    at::Tensor y = bias_.defined() ? at::addmm(bias_, rows, weight_.t())
                                   : at::mm(rows, weight_.t());
    if (scale_.defined()) y = y * scale_;
    if (epilogue_ == Epilogue::kGelu) y = at::gelu(y);
    return LikeRowsOf(x, y);
  }

  void AddTo(Residual& residual, const at::Tensor& x) const override {
    residual.Add(Forward(x));
  }

 private:
  at::Tensor weight_;  // [out, in]
  at::Tensor bias_;    // [out] or undefined.
  at::Tensor scale_;   // [out] or undefined.
  Epilogue epilogue_;
};

}  // namespace

std::unique_ptr<LinearOp> ReferenceImplementation::MakeLinear(
    const LinearParameters& parameters) const {
  return std::make_unique<ReferenceLinear>(parameters);
}

}  // namespace sfmamba::ops
