#ifndef SFMAMBA_MODEL_OPS_SCAN_ARGUMENTS_H_
#define SFMAMBA_MODEL_OPS_SCAN_ARGUMENTS_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "kernels/scan/selective_scan.h"
#include "model/ops/kernel_types.h"

namespace sfmamba::ops {

// Returns the kernels' arguments for a scan of u to y, both [tokens, channels],
// in sequences of `length` tokens. dt has the same shape. B and C are [tokens,
// states] and have the same distance between rows. All tensors have type T.
// `scan` has A, D and bias, like ScanParameters.
template <typename T, typename Scan>
kernels::SelectiveScanArgs<T> ScanArguments(const Scan& scan,
                                            const at::Tensor& u,
                                            const at::Tensor& dt,
                                            const at::Tensor& B,
                                            const at::Tensor& C, int64_t length,
                                            const at::Tensor& y) {
  TORCH_CHECK(B.stride(0) == C.stride(0), "B and C must have one row stride");
  kernels::SelectiveScanArgs<T> args;
  args.channels = u.size(1);
  args.states = scan.A.size(0);
  args.u = Data<T>(u);
  args.u_stride = u.stride(0);
  args.dt = Data<T>(dt);
  args.dt_stride = dt.stride(0);
  args.B = Data<T>(B);
  args.C = Data<T>(C);
  args.bc_stride = B.stride(0);
  args.y = Data<T>(y);
  args.y_stride = y.stride(0);
  args.A = Floats(scan.A);
  args.a_stride = scan.A.stride(0);
  args.D = Floats(scan.D);
  args.bias = Floats(scan.bias);
  args.sequences = Sequences(u, length);
  return args;
}

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_SCAN_ARGUMENTS_H_
