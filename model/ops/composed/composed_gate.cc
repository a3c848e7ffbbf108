#include "model/ops/composed/composed_gate.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/gelu.h"
#include "ATen/ops/silu.h"

namespace sfmamba::ops {

at::Tensor& ActivateByLibtorch(at::Tensor& x, model::Nonlinearity activation) {
  return activation == model::Nonlinearity::kSilu ? at::silu_(x) : at::gelu_(x);
}

ComposedGate::ComposedGate(const Implementation& implementation,
                           const GatedConvolutionParameters& parameters)
    : conv_(parameters.weights.weight.size(0)), gate_(parameters.gate) {
  ConvolutionParameters convolution;
  convolution.weights = parameters.weights;
  convolution.groups = static_cast<int>(conv_);
  convolution_ = implementation.MakeConvolution(convolution);
}

at::Tensor ComposedGate::Forward(const at::Tensor& x) const {
  const int64_t hidden = x.size(3) / 2;
  at::Tensor gate = x.narrow(3, 0, hidden).clone();
  const at::Tensor convolved =
      convolution_
          ->Forward(
              x.narrow(3, 2 * hidden - conv_, conv_).permute({0, 3, 1, 2}))
          .permute({0, 2, 3, 1});
  return ActivateByLibtorch(gate, gate_)
      .mul_(at::cat({x.narrow(3, hidden, hidden - conv_), convolved}, 3));
}

}  // namespace sfmamba::ops
