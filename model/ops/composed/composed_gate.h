#ifndef SFMAMBA_MODEL_OPS_COMPOSED_COMPOSED_GATE_H_
#define SFMAMBA_MODEL_OPS_COMPOSED_COMPOSED_GATE_H_

#include <memory>

#include "model/ops/implementation.h"

namespace sfmamba::ops {

// Returns the activation of x, by libtorch, in x's memory.
at::Tensor& ActivateByLibtorch(at::Tensor& x, model::Nonlinearity activation);

// A gated convolution step by step: an implementation's depthwise convolution,
// and libtorch's operators for the gate.
class ComposedGate : public GatedConvolutionOp {
 public:
  ComposedGate(const Implementation& implementation,
               const GatedConvolutionParameters& parameters);

  at::Tensor Forward(const at::Tensor& x) const override;

 private:
  int64_t conv_;  // Channels that are convolved.
  model::Nonlinearity gate_;
  std::unique_ptr<const ConvolutionOp> convolution_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPOSED_COMPOSED_GATE_H_
