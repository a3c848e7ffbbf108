#ifndef SFMAMBA_MODEL_OPS_COMPOSED_COMPOSED_GATE_H_
#define SFMAMBA_MODEL_OPS_COMPOSED_COMPOSED_GATE_H_

#include <memory>

#include "model/ops/implementation.h"

namespace sfmamba::ops {

// Applies the activation to x in place, with libtorch. Returns x.
at::Tensor& ActivateByLibtorch(at::Tensor& x, model::Nonlinearity activation);

// Computes a gated convolution in separate steps. An operator of the given
// Implementation computes the depthwise convolution. Operators of libtorch
// compute the gate.
class ComposedGate : public GatedConvolutionOp {
 public:
  ComposedGate(const Implementation& implementation,
               const GatedConvolutionParameters& parameters);

  at::Tensor Forward(const at::Tensor& x) const override;

 private:
  int64_t conv_;  // The number of convolved channels.
  model::Nonlinearity gate_;
  std::unique_ptr<const ConvolutionOp> convolution_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPOSED_COMPOSED_GATE_H_
