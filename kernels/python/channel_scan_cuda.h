#ifndef SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_CUDA_H_
#define SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_CUDA_H_

#include <cstdint>
#include <string>

#include "kernels/cuda/cuda_stream.h"
#include "kernels/python/strided.h"

namespace sfmamba::kernels {

// The scan of channel_scan.h for all images of a batch, whose channels form
// groups that share B and C. The pointers are device pointers. T is float,
// BFloat16 or double.
template <typename T>
struct BatchScanArgs {
  using Real = Arithmetic<T>;

  int images, groups;
  int channels;  // How many a group has.
  int states;    // 1 .. kMaxDeviceStates
  int64_t tokens;
  int64_t period;  // At least 1.
  bool softplus;
  StridedBatch<const T> u, delta;  // The rows are a group's channels.
  StridedBatch<const T> z;         // The same, or null.
  StridedBatch<const T> B, C;      // The rows are states.
  const Real* A;                   // [groups, channels, states]
  const Real* D;                   // [groups, channels], or null
  const Real* bias;                // [groups, channels], or null
};

constexpr int kMaxDeviceStates = 32;

template <typename T>
struct BatchScanForward {
  StridedBatch<T> out;        // The rows are channels; written.
  Arithmetic<T>* last_state;  // [images, groups, channels, states], written
};

// Gradients of the outputs and, written, of the inputs.
template <typename T>
struct BatchScanBackward {
  using Real = Arithmetic<T>;

  StridedBatch<const T> out;
  const Real* last_state;  // [images, groups, channels, states], or null for 0
  StridedBatch<T> u, delta;  // The rows are channels.
  StridedBatch<T> z;         // The same; unused without a z.
  Real* A;                   // [images, groups, channels, states]
  Real* D;                   // [images, groups, channels]
  Real* bias;                // [images, groups, channels]
  // Sums over each range of a group's channels; there are BatchScanRanges().
  Real* B;      // [images, groups, ranges, states, tokens]
  Real* C;      // [images, groups, ranges, states, tokens]
  Real* saved;  // BatchScanSaved() values, overwritten
};

// Enqueue on `stream` and return. The result is empty, or says why the launch
// was refused: the package has no absl::Status. Equal arguments give equal
// bits.
template <typename T>
std::string BatchScanCuda(const BatchScanArgs<T>& args,
                          const BatchScanForward<T>& results,
                          CudaStream stream);
template <typename T>
std::string BatchScanGradientCuda(const BatchScanArgs<T>& args,
                                  const BatchScanBackward<T>& gradients,
                                  CudaStream stream);

template <typename T>
int64_t BatchScanRanges(const BatchScanArgs<T>& args);
template <typename T>
int64_t BatchScanSaved(const BatchScanArgs<T>& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_CUDA_H_
