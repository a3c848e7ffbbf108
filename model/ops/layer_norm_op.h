#ifndef SFMAMBA_MODEL_OPS_LAYER_NORM_OP_H_
#define SFMAMBA_MODEL_OPS_LAYER_NORM_OP_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "model/ops/residual.h"

namespace sfmamba::ops {

struct LayerNormParameters {
  at::Tensor gamma, beta;  // [width]
  float eps = 1e-5f;
};

// A LayerNorm over the last axis. Immutable, so thread-safe.
class LayerNormOp {
 public:
  virtual ~LayerNormOp() = default;

  // Returns the norm of x's tokens, in x's shape and in a type that the
  // implementation's linear operators read. If `swap` is true, the first and
  // the last token of each sequence of `length` tokens are exchanged, in the
  // result and also in x.
  virtual at::Tensor Forward(Residual& x, int64_t length, bool swap) const = 0;
  // Returns the norm of all tokens of x without exchanging tokens. Then removes
  // all tokens from x except tokens [first, first + count) of each row.
  virtual at::Tensor ForwardKeeping(Residual& x, int64_t first,
                                    int64_t count) const {
    const at::Tensor y = Forward(x, x.sizes()[1], /*swap=*/false);
    x = Residual(x.Sum().narrow(1, first, count).contiguous());
    return y;
  }
  // Returns the norm over the channels of each pixel of map [N, width, H, W],
  // in fp32.
  virtual at::Tensor ForwardMap(const at::Tensor& map) const = 0;
};

// Returns a copy of x [rows, tokens, width] in which the first and the last
// token of each sequence of `length` tokens are exchanged.
at::Tensor SwapEnds(const at::Tensor& x, int64_t length);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_LAYER_NORM_OP_H_
