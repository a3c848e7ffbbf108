#include "model/ops/composed/composed_gate.h"
#include "model/ops/cuda/cuda_implementation.h"

namespace sfmamba::ops {

std::unique_ptr<GatedConvolutionOp> CudaImplementation::MakeGatedConvolution(
    const GatedConvolutionParameters& parameters) const {
  return std::make_unique<ComposedGate>(*this, parameters);
}

void CudaImplementation::Activate(at::Tensor& x,
                                  model::Nonlinearity activation) const {
  ActivateByLibtorch(x, activation);
}

}  // namespace sfmamba::ops
