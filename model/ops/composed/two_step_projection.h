#ifndef SFMAMBA_MODEL_OPS_COMPOSED_TWO_STEP_PROJECTION_H_
#define SFMAMBA_MODEL_OPS_COMPOSED_TWO_STEP_PROJECTION_H_

#include <memory>

#include "model/ops/implementation.h"

namespace sfmamba::ops {

// Computes the inputs of a scan by two linear operators of an implementation.
// x_proj computes (low-rank dt | B | C), and dt_proj expands dt.
class TwoStepProjection : public ScanProjectionOp {
 public:
  TwoStepProjection(const Implementation& implementation,
                    const ScanProjectionParameters& parameters);

  ScanInputs Forward(const at::Tensor& u) const override;

  // Splits p [rows, tokens, ... + 2 * states] into (dt | B | C).
  static ScanInputs Split(const at::Tensor& u, const at::Tensor& p,
                          int64_t states);

 private:
  int64_t states_;
  std::unique_ptr<const LinearOp> x_proj_, dt_proj_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPOSED_TWO_STEP_PROJECTION_H_
