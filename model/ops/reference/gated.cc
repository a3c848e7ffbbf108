#include "model/ops/composed/composed_gate.h"
#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::ops {

std::unique_ptr<GatedConvolutionOp>
ReferenceImplementation::MakeGatedConvolution(
    const GatedConvolutionParameters& parameters) const {
  return std::make_unique<ComposedGate>(*this, parameters);
}

void ReferenceImplementation::Activate(at::Tensor& x,
                                       model::Nonlinearity activation) const {
  ActivateByLibtorch(x, activation);
}

}  // namespace sfmamba::ops
