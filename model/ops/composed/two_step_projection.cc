#include "model/ops/composed/two_step_projection.h"

namespace sfmamba::ops {

TwoStepProjection::TwoStepProjection(const Implementation& implementation,
                                     const ScanProjectionParameters& parameters)
    : states_(parameters.states),
      x_proj_(implementation.MakeLinear({parameters.x_proj, {}})),
      dt_proj_(implementation.MakeLinear({parameters.dt_proj, {}})) {}

ScanInputs TwoStepProjection::Forward(const at::Tensor& u) const {
  ScanInputs inputs = Split(u, x_proj_->Forward(u), states_);
  inputs.dt = dt_proj_->Forward(inputs.dt);
  return inputs;
}

ScanInputs TwoStepProjection::Split(const at::Tensor& u, const at::Tensor& p,
                                    int64_t states) {
  const int64_t first = p.size(2) - 2 * states;
  return {u, p.narrow(2, 0, first), p.narrow(2, first, states),
          p.narrow(2, first + states, states)};
}

}  // namespace sfmamba::ops
