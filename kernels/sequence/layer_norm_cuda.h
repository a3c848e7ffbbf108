#ifndef SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_CUDA_H_
#define SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_CUDA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/base/packed_sequences.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// The most channels that LayerNormCuda takes.
constexpr int kLayerNormCudaChannels = 2048;

// Layer normalisation as in kernels/sequence/layer_norm.h, `swap` included,
// preceded by a residual addition: first x[i,c] += add[i,c], rounded to X and
// written to x; then the new x is swapped and normalised.
template <typename X, typename Y>
struct LayerNormCudaArgs {
  int channels;  // At most kLayerNormCudaChannels.
  // [tokens, channels], rows x_stride apart; written only with `add` or `swap`,
  // and not with `kept`.
  X* x;
  int64_t x_stride;
  // [tokens, channels], rows add_stride apart, in the order before the swap.
  // Null if there is nothing to add.
  const Y* add = nullptr;
  int64_t add_stride = 0;
  // [tokens, channels], written. Must not overlap x; may be `add` itself unless
  // `swap` is set.
  Y* y;
  int64_t y_stride;
  const float* gamma;  // [channels]
  const float* beta;   // [channels]
  float eps;
  bool swap;
  // If not null, the new x is written here instead of to x, and only tokens
  // [kept_first, kept_first + kept_count) of each sequence, which all of them
  // have: [sequences * kept_count, channels], contiguous. Not with `swap`.
  X* kept = nullptr;
  int kept_first = 0, kept_count = 0;
  // Without `swap` and `kept`, only the first token and the end of the last one
  // matter.
  PackedSequences sequences;
};

// Enqueues on `stream` and returns. INVALID_ARGUMENT for more than
// kLayerNormCudaChannels channels, INTERNAL if the launch is refused. All
// pointers in `args`, offsets included, are device pointers. Y is float,
// BFloat16 or Float16; X is Y or float. A token's output bits depend on that
// token alone. Fastest where pointers and strides are multiples of 16 bytes.
template <typename X, typename Y>
absl::Status LayerNormCuda(const LayerNormCudaArgs<X, Y>& args,
                           CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_CUDA_H_
