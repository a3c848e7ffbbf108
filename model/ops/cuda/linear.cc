#include "model/ops/cuda/cuda_implementation.h"
#include "model/ops/rows.h"

namespace sfmamba::ops {
namespace {

class CudaLinear : public LinearOp {
 public:
  CudaLinear(const DeviceOps& device, const Weights& weights, Epilogue epilogue,
             bool tanh_gelu, at::ScalarType type)
      : device_(device),
        epilogue_(epilogue),
        tanh_gelu_(tanh_gelu),
        type_(type),
        weight_(weights.weight.to(type)) {
    if (weights.bias.defined()) bias_ = weights.bias.to(type);
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    return LikeRowsOf(x, ForwardRows(AsRows(x).to(type_)));
  }

  void AddTo(Residual& residual, const at::Tensor& x) const override {
    const at::Tensor rows = AsRows(x).to(type_);
    // If there is no bias and the types are equal, cuBLAS adds the product to
    // the residual stream. If not, the next LayerNorm adds it. This needs no
    // additional pass, because the LayerNorm reads the stream anyway.
    if (!bias_.defined() && residual.scalar_type() == type_) {
      device_.AddLinear(rows, weight_,
                        residual.Sum().view({-1, weight_.size(0)}));
    } else {
      residual.AddLater(ForwardRows(rows));
    }
  }

 private:
  at::Tensor ForwardRows(const at::Tensor& rows) const {
    if (epilogue_ == Epilogue::kGelu && tanh_gelu_ && bias_.defined()) {
      return device_.LinearGeluTanh(rows, weight_, bias_);
    }
    const at::Tensor y = device_.Linear(rows, weight_, bias_);
    if (epilogue_ == Epilogue::kGelu) {
      device_.Activate(y, /*bias=*/{}, kernels::CudaActivation::kGeluErf);
    }
    return y;
  }

  const DeviceOps& device_;
  Epilogue epilogue_;
  bool tanh_gelu_;
  at::ScalarType type_;
  at::Tensor weight_;  // [out, in]
  at::Tensor bias_;    // [out] or undefined.
};

}  // namespace

std::unique_ptr<LinearOp> CudaImplementation::MakeLinear(
    const LinearParameters& parameters) const {
  const Weights weights = parameters.scale.defined()
                              ? FoldScale(parameters.weights, parameters.scale)
                              : parameters.weights;
  const at::ScalarType type = TypeOf(parameters.is_output);
  // In half precision, cuBLAS computes the tanh form together with the product.
  // The erf form would need another pass over memory.
  const bool tanh_gelu = !options_.exact_gelu && type != at::kFloat;
  return std::make_unique<CudaLinear>(device_, weights, parameters.epilogue,
                                      tanh_gelu, type);
}

}  // namespace sfmamba::ops
