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
// with a residual addition before it: first x[i,c] += add[i,c], rounded to X
// and written to x, then the normalisation of what was written.
template <typename X, typename Y>
struct LayerNormCudaArgs {
  int channels;  // At most kLayerNormCudaChannels.
  X* x;  // [tokens, channels], rows x_stride apart; written by `add`, `swap`
  int64_t x_stride;
  const Y* add = nullptr;  // [tokens, channels], rows add_stride apart, where
                           // x's rows lie before a swap; or null for none
  int64_t add_stride = 0;
  Y* y;  // [tokens, channels], written; apart from x; may be `add` itself if
         // nothing is swapped
  int64_t y_stride;
  const float* gamma;  // [channels]
  const float* beta;   // [channels]
  float eps;
  bool swap;
  PackedSequences sequences;  // Without `swap` only the tokens' range counts.
};

// Enqueues on `stream` and returns; INVALID_ARGUMENT above
// kLayerNormCudaChannels, INTERNAL if the launch is refused. All pointers in
// `args`, offsets included, are the device's. X, Y are float, BFloat16 or
// Float16, both the same or X float. A token's bits depend on nothing but
// itself. Fastest where rows and pointers are multiples of 16 bytes.
template <typename X, typename Y>
absl::Status LayerNormCuda(const LayerNormCudaArgs<X, Y>& args,
                           CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEQUENCE_LAYER_NORM_CUDA_H_
