#ifndef SFMAMBA_MODEL_OPS_PLAIN_OPS_H_
#define SFMAMBA_MODEL_OPS_PLAIN_OPS_H_

#include "ATen/core/Tensor.h"
#include "model/ops/ops.h"

namespace sfmamba::plain {

// The mixer's operations in libtorch's operators, as SF-Mamba defines them on a
// folded batch (arXiv 2603.16423, 3.3): slow, made to be read and compared
// with. x, u, dt, B, C are [rows, tokens, channels]; a new sequence begins at
// each multiple of `length` tokens.

// weight [taps, channels], of which `left` before the token itself, bias
// [channels] or undefined; a tap beyond its sequence is left out.
at::Tensor DepthwiseConv(const at::Tensor& x, const at::Tensor& weight,
                         const at::Tensor& bias, int left, int64_t length);

// The recurrence token by token; the state is forgotten, not multiplied by 0,
// where a sequence begins.
at::Tensor SelectiveScan(const ops::Scan& scan, const at::Tensor& u,
                         const at::Tensor& dt, const at::Tensor& B,
                         const at::Tensor& C, int64_t length);

}  // namespace sfmamba::plain

#endif  // SFMAMBA_MODEL_OPS_PLAIN_OPS_H_
