#ifndef SFMAMBA_MODEL_OPS_ROWS_H_
#define SFMAMBA_MODEL_OPS_ROWS_H_

#include <vector>

#include "ATen/core/Tensor.h"

namespace sfmamba::ops {

// Returns x [..., in] as [rows, in], without a copy if the rows are evenly
// spaced.
inline at::Tensor AsRows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

// Views y [rows, out] with the leading sizes of x [..., in].
inline at::Tensor LikeRowsOf(const at::Tensor& x, const at::Tensor& y) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = y.size(1);
  return y.view(sizes);
}

// Views x [rows, tokens, channels] as [rows * tokens, channels].
inline at::Tensor ToRows(const at::Tensor& x) {
  return x.view({-1, x.size(2)});
}

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_ROWS_H_
