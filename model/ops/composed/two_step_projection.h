#ifndef SFMAMBA_MODEL_OPS_COMPOSED_TWO_STEP_PROJECTION_H_
#define SFMAMBA_MODEL_OPS_COMPOSED_TWO_STEP_PROJECTION_H_

#include <memory>

#include "model/ops/implementation.h"

namespace sfmamba::ops {

// Computes the inputs of a scan (dt, B and C) from u with two linear operators.
// The first operator, x_proj, computes a matrix with the columns (r | B | C),
// where r is dt in low rank. The second operator, dt_proj, expands r to dt.
class TwoStepProjection : public ScanProjectionOp {
 public:
  TwoStepProjection(const Implementation& implementation,
                    const ScanProjectionParameters& parameters);

  ScanInputs Forward(const at::Tensor& u) const override;

  // Splits the columns of p [rows, tokens, d + 2 * states]. The first d columns
  // become dt, the next `states` columns B, and the last `states` columns C.
  // Returns dt, B and C together with u. If p is a result of x_proj, dt is
  // still in low rank.
  static ScanInputs Split(const at::Tensor& u, const at::Tensor& p,
                          int64_t states);

 private:
  int64_t states_;
  std::unique_ptr<const LinearOp> x_proj_, dt_proj_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPOSED_TWO_STEP_PROJECTION_H_
