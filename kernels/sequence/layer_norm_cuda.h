#ifndef SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_CUDA_H_
#define SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/base/packed_sequences.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// The maximum number of channels that LayerNormCuda() supports.
constexpr int kLayerNormCudaChannels = 2048;

// A residual addition, followed by layer normalisation as in
// kernels/sequence/layer_norm.h. First, x[i,c] += add[i,c] is computed, rounded
// to X and written to x. Then the new x is normalised, with an optional swap of
// tokens.
template <typename X, typename Y>
struct LayerNormCudaArgs {
  int channels;  // At most kLayerNormCudaChannels.
  // [tokens, channels], rows x_stride apart. Not written if `kept` is set.
  // Otherwise written if `add` or `swap` is set.
  X* x;
  int64_t x_stride;
  // [tokens, channels], rows add_stride apart, in the order before the swap.
  // Null if there is nothing to add.
  const Y* add = nullptr;
  int64_t add_stride = 0;
  // [tokens, channels], written. Must not overlap x. May be equal to `add`
  // unless `swap` is set.
  Y* y;
  int64_t y_stride;
  const float* gamma;  // [channels]
  const float* beta;   // [channels]
  float eps;
  bool swap;
  // If not null, the new x is written here instead of to x. Only the tokens
  // [kept_first, kept_first + kept_count) of each sequence are written. The
  // result is a contiguous array [sequences * kept_count, channels]. Every
  // sequence must have these tokens, and `swap` must be false.
  X* kept = nullptr;
  int kept_first = 0, kept_count = 0;
  // If `swap` is false and `kept` is null, only the start of the first sequence
  // and the end of the last sequence are used.
  PackedSequences sequences;
};

// Enqueues the work on `stream` and does not wait for it. Returns
// INVALID_ARGUMENT for more than kLayerNormCudaChannels channels, and INTERNAL
// if CUDA refuses the launch. All pointers in `args`, including offsets, are
// device pointers. Y is float, BFloat16 or Float16. X is Y or float. A token's
// output bits depend on this token alone. The kernel is fastest if pointers and
// strides are multiples of 16 bytes.
template <typename X, typename Y>
absl::Status LayerNormCuda(const LayerNormCudaArgs<X, Y>& args,
                           CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_CUDA_H_
