#include <string>

#include "ATen/ops/addmm.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/mm.h"
#include "model/ops/compute_type.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/onednn.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/rows.h"

namespace sfmamba::ops {
namespace {

// The number of rows that oneDNN packs weights for: those of a stage-3 window.
constexpr int64_t kTypicalRows = 196;

// By our kernel, with products in fp32 or bf16. Sums are fp32. With products in
// bf16, inputs are fp32 or bf16, and so are results.
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
    const bool gelu = epilogue_ == Epilogue::kGelu;
    if (gelu && result_ == at::kBFloat16) {
      Gemm(rows, weights_, bias_, GemmOutput::kGeluErf, y);
    } else {
      Gemm(rows, weights_, bias_, GemmOutput::kSet, y);
      if (gelu) GeluErf(y);
    }
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

// In bf16, by oneDNN.
class OneDnnLinear : public LinearOp {
 public:
  OneDnnLinear(const Weights& weights, Epilogue epilogue, at::ScalarType type)
      : type_(type),
        weight_(PackLinearWeight(weights.weight.to(type), kTypicalRows)),
        attr_(epilogue == Epilogue::kGelu ? "gelu" : "none") {
    if (weights.bias.defined()) bias_ = weights.bias.to(type);
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    return LikeRowsOf(
        x, OneDnnProduct(AsRows(x).to(type_), weight_, bias_, attr_));
  }

  void AddTo(Residual& residual, const at::Tensor& x) const override {
    residual.Add(Forward(x));
  }

 private:
  at::ScalarType type_;
  at::Tensor weight_;  // Packed.
  at::Tensor bias_;    // [out] or undefined.
  std::string attr_;
};

// In half precision without the processor's support.
class TorchLinear : public LinearOp {
 public:
  TorchLinear(const Weights& weights, Epilogue epilogue, at::ScalarType type)
      : weight_(weights.weight.to(type)), epilogue_(epilogue) {
    if (weights.bias.defined()) bias_ = weights.bias.to(type);
  }

  at::Tensor Forward(const at::Tensor& x) const override {
    const at::Tensor rows = AsRows(x).to(weight_.scalar_type());
    at::Tensor y = bias_.defined() ? at::addmm(bias_, rows, weight_.t())
                                   : at::mm(rows, weight_.t());
    if (epilogue_ == Epilogue::kGelu) GeluErf(y);
    return LikeRowsOf(x, y);
  }

  void AddTo(Residual& residual, const at::Tensor& x) const override {
    residual.Add(Forward(x));
  }

 private:
  at::Tensor weight_;  // [out, in]
  at::Tensor bias_;    // [out] or undefined.
  Epilogue epilogue_;
};

}  // namespace

std::unique_ptr<LinearOp> CpuImplementation::MakeLinear(
    const LinearParameters& parameters) const {
  const Weights weights = parameters.scale.defined()
                              ? FoldScale(parameters.weights, parameters.scale)
                              : parameters.weights;
  switch (ProductsOf(parameters.is_output)) {
    case Products::kFloat:
      return std::make_unique<PackedLinear>(weights, parameters.epilogue,
                                            at::kFloat, at::kFloat);
    case Products::kBFloat16:
      return std::make_unique<PackedLinear>(
          weights, parameters.epilogue, at::kBFloat16,
          parameters.feeds_products ? at::kBFloat16 : at::kFloat);
    case Products::kOneDnn:
      return std::make_unique<OneDnnLinear>(weights, parameters.epilogue,
                                            at::kBFloat16);
    case Products::kTorch:
      break;
  }
  return std::make_unique<TorchLinear>(weights, parameters.epilogue,
                                       ComputeType(precision_));
}

}  // namespace sfmamba::ops
