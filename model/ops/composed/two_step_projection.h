#ifndef SFMAMBA_MODEL_OPS_COMPOSED_TWO_STEP_PROJECTION_H_
#define SFMAMBA_MODEL_OPS_COMPOSED_TWO_STEP_PROJECTION_H_

#include <memory>

#include "model/ops/implementation.h"

namespace sfmamba::ops {

// Computes the inputs of a scan with two linear operators of an implementation.
// x_proj computes (p | B | C), where p is dt in low rank. dt_proj expands p to
// dt.
class TwoStepProjection : public ScanProjectionOp {
 public:
  TwoStepProjection(const Implementation& implementation,
                    const ScanProjectionParameters& parameters);

  ScanInputs Forward(const at::Tensor& u) const override;

  // Splits the columns of p [rows, tokens, ... + 2 * states] into dt, B and C.
  static ScanInputs Split(const at::Tensor& u, const at::Tensor& p,
                          int64_t states);

 private:
  int64_t states_;
  std::unique_ptr<const LinearOp> x_proj_, dt_proj_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPOSED_TWO_STEP_PROJECTION_H_
