// Functions that the GPU operators of sfmamba_scan share.
#ifndef SFMAMBA_KERNELS_PYTHON_DEVICE_TENSORS_H_
#define SFMAMBA_KERNELS_PYTHON_DEVICE_TENSORS_H_

#include <ATen/DeviceGuard.h>

#include <string>
#include <type_traits>

#include "kernels/python/strided.h"
#include "kernels/python/tensors.h"

namespace sfmamba::kernels {

// Returns `tensor`, [images, groups, rows, tokens], as an argument for kernels.
template <typename T>
StridedBatch<T> BatchOf(const Tensor& tensor) {
  return {Data<std::remove_const_t<T>>(tensor), tensor.stride(0),
          tensor.stride(1), tensor.stride(2), tensor.stride(3)};
}

// Throws RuntimeError if a launcher returned an error.
inline void ExpectLaunched(const std::string& error) {
  TORCH_CHECK(error.empty(), error);
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_DEVICE_TENSORS_H_
