#include "ATen/ops/empty.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/rows.h"

namespace sfmamba::ops {
namespace {

// Multiplies by our kernel, with products in fp32 or bf16. Sums are fp32. With
// products in bf16, inputs are fp32 or bf16, and so are results.
class PackedLinear : public LinearOp {
 public:
  // `result` is the type of Forward()'s results, fp32 or that of the products.
  PackedLinear(const Weights& weights, Epilogue epilogue, at::ScalarType type,
               at::ScalarType result)
      : weights_(PackGemm(weights.weight, type)),
        bias_(weights.bias),
        epilogue_(epilogue),
        result_(result) {}

  at::Tensor Forward(const at::Tensor& x) const override {
    const at::Tensor rows = Rows(x);
    at::Tensor y =
        at::empty({rows.size(0), weights_.out}, rows.options().dtype(result_));
    Gemm(rows, weights_, bias_,
         epilogue_ == Epilogue::kGelu ? GemmOutput::kGeluErf : GemmOutput::kSet,
         y);
    return LikeRowsOf(x, y);
  }

  void AddTo(Residual& residual, const at::Tensor& x) const override {
    Gemm(Rows(x), weights_, bias_, GemmOutput::kAdd,
         residual.Sum().view({-1, weights_.out}));
  }

 private:
  // Returns x as rows of a type that the product reads.
  at::Tensor Rows(const at::Tensor& x) const {
    const at::Tensor rows = AsRows(x);
    return rows.scalar_type() == weights_.values.scalar_type()
               ? rows
               : rows.to(at::kFloat);
  }

  PackedWeights weights_;
  at::Tensor bias_;  // [out] or undefined.
  Epilogue epilogue_;
  at::ScalarType result_;
};

// Multiplies by our kernel, with products in int8. Inputs and results are fp32.
class Int8Linear : public LinearOp {
 public:
  Int8Linear(const Weights& weights, Epilogue epilogue)
      : weights_(PackInt8Gemm(weights.weight)),
        bias_(weights.bias),
        epilogue_(epilogue) {}

  at::Tensor Forward(const at::Tensor& x) const override {
    const at::Tensor rows = AsRows(x).to(at::kFloat);
    at::Tensor y = at::empty({rows.size(0), weights_.out}, at::kFloat);
    Gemm(rows, weights_, bias_,
         epilogue_ == Epilogue::kGelu ? GemmOutput::kGeluErf : GemmOutput::kSet,
         y);
    return LikeRowsOf(x, y);
  }

  void AddTo(Residual& residual, const at::Tensor& x) const override {
    Gemm(AsRows(x).to(at::kFloat), weights_, bias_, GemmOutput::kAdd,
         residual.Sum().view({-1, weights_.out}));
  }

 private:
  Int8PackedWeights weights_;
  at::Tensor bias_;  // [out] or undefined.
  Epilogue epilogue_;
};

}  // namespace

std::unique_ptr<LinearOp> CpuImplementation::MakeLinear(
    const LinearParameters& parameters) const {
  const Weights weights = parameters.scale.defined()
                              ? FoldScale(parameters.weights, parameters.scale)
                              : parameters.weights;
  if (int8_ && !parameters.is_output) {
    return std::make_unique<Int8Linear>(weights, parameters.epilogue);
  }
  const at::ScalarType type = ProductsOf(parameters.is_output);
  return std::make_unique<PackedLinear>(
      weights, parameters.epilogue, type,
      parameters.feeds_products ? type : at::kFloat);
}

}  // namespace sfmamba::ops
