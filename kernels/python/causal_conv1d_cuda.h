#ifndef SFMAMBA_KERNELS_PYTHON_CAUSAL_CONV1D_CUDA_H_
#define SFMAMBA_KERNELS_PYTHON_CAUSAL_CONV1D_CUDA_H_

#include <cstdint>
#include <string>

#include "kernels/cuda/cuda_stream.h"
#include "kernels/python/strided.h"

namespace sfmamba::kernels {

// The convolution of causal_conv1d.h for all images of a batch. All pointers
// are device pointers, and all tensors have one group. T is float, BFloat16 or
// double.
template <typename T>
struct BatchConv1dArgs {
  using Real = Arithmetic<T>;

  int images, channels;
  int taps;  // 1 .. kMaxDeviceTaps
  int64_t tokens;
  int64_t period;  // At least 1.
  bool silu;
  StridedBatch<const T> x;        // The rows are channels.
  StridedBatch<const T> initial;  // [images, channels, taps-1], or null
  const int32_t* run;             // [images, tokens], or null
  const Real* weight;             // [channels, taps]
  const Real* bias;               // [channels], or null
};

constexpr int kMaxDeviceTaps = 8;

// The gradient of the output, which is read, and the gradients of the inputs,
// which are written.
template <typename T>
struct BatchConv1dBackward {
  StridedBatch<const T> out;
  StridedBatch<T> x;
  StridedBatch<T> initial;  // Unused if args.initial is null.
  Arithmetic<T>* weight;    // [images, channels, taps]
  Arithmetic<T>* bias;      // [images, channels]
};

// These functions enqueue the work on `stream` and do not wait for it. They
// return an error message if CUDA refuses the launch. Otherwise, they return an
// empty string. They do not return absl::Status, because the Python package is
// built without Abseil. Equal arguments give bit-identical results.
template <typename T>
std::string BatchConv1dCuda(const BatchConv1dArgs<T>& args, StridedBatch<T> out,
                            CudaStream stream);
template <typename T>
std::string BatchConv1dGradientCuda(const BatchConv1dArgs<T>& args,
                                    const BatchConv1dBackward<T>& gradients,
                                    CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_CAUSAL_CONV1D_CUDA_H_
