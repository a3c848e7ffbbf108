#ifndef SFMAMBA_MODEL_OPS_PLAIN_OPS_H_
#define SFMAMBA_MODEL_OPS_PLAIN_OPS_H_

#include "ATen/core/Tensor.h"
#include "model/ops/ops.h"

namespace sfmamba::plain {

// The mixer's operations on a folded batch, as SF-Mamba (arXiv 2603.16423, 3.3)
// defines them, by libtorch's operators. They are slow and serve as a readable
// reference. x, u, dt, B and C are [rows, tokens, channels]. A new sequence
// begins at each multiple of `length` tokens.

// weight is [taps, channels], with `left` taps before the token; bias is
// [channels] or undefined. Taps beyond the sequence are skipped.
at::Tensor DepthwiseConv(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias, int left, int64_t length);

// Runs the recurrence token by token. Where a sequence begins, the state is
// replaced, not multiplied by 0.
at::Tensor SelectiveScan(const ops::Scan& scan, const at::Tensor& u,
                         const at::Tensor& dt, const at::Tensor& B,
                         const at::Tensor& C, int64_t length);

}  // namespace sfmamba::plain

#endif  // SFMAMBA_MODEL_OPS_PLAIN_OPS_H_
