#ifndef SFMAMBA_TESTS_KERNELS_CUDA_ROW_SUMS_CUDA_H_
#define SFMAMBA_TESTS_KERNELS_CUDA_ROW_SUMS_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// Computes sums[r], the sum over c of x[r * columns + c], in float. This small
// kernel tests the build and the emulator with the features of larger kernels.
// T is float, BFloat16 or Float16.
template <typename T>
absl::Status RowSumsCuda(const T* x, int rows, int columns, float* sums,
                         CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_CUDA_ROW_SUMS_CUDA_H_
