#ifndef SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_CUDA_H_
#define SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_CUDA_H_

#include <cstdint>
#include <string>

#include "kernels/cuda/cuda_stream.h"
#include "kernels/python/strided.h"

namespace sfmamba::kernels {

// The scan of channel_scan.h for all images of a batch. The channels form
// groups, and all channels of a group use the same B and C. All pointers are
// device pointers. T is float, BFloat16 or double.
template <typename T>
struct BatchScanArgs {
  using Real = Arithmetic<T>;

  int images, groups;
  int channels;  // In each group.
  int states;    // 1 .. kMaxDeviceStates
  int64_t tokens;
  int64_t period;  // At least 1.
  bool softplus;
  StridedBatch<const T> u, delta;  // The rows are a group's channels.
  StridedBatch<const T> z;         // The rows are channels. May be null.
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

// The gradients of the outputs, which are read, and of the inputs, which are
// written.
template <typename T>
struct BatchScanBackward {
  using Real = Arithmetic<T>;

  StridedBatch<const T> out;
  const Real* last_state;  // [images, groups, channels, states], or null for 0
  StridedBatch<T> u, delta;  // The rows are channels.
  StridedBatch<T> z;         // The rows are channels. Unused if args.z is null.
  Real* A;                   // [images, groups, channels, states]
  Real* D;                   // [images, groups, channels]
  Real* bias;                // [images, groups, channels]
  // The gradients of B and C. The channels of a group are divided into
  // BatchScanRanges() ranges. Each element is a sum over the channels of one
  // range, and the caller adds the sums of all ranges.
  Real* B;      // [images, groups, ranges, states, tokens]
  Real* C;      // [images, groups, ranges, states, tokens]
  Real* saved;  // BatchScanSaved() values, overwritten
};

// These functions enqueue the work on `stream` and do not wait for it. They
// return an error message if CUDA refuses the launch. Otherwise, they return an
// empty string. They do not return absl::Status, because the Python package is
// built without Abseil. Equal arguments give bit-identical results.
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
