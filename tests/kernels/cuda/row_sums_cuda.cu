#include "simt/simt.h"
#include "tests/kernels/cuda/row_sums_cuda.h"

namespace sfmamba::kernels {
namespace {

constexpr int kThreads = 64;
constexpr unsigned kAll = 0xffffffff;

// Sums one row per block. Each warp sums by shuffles, and the first warp adds
// these sums.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    RowSums(const T* __restrict__ x, int columns, float* __restrict__ sums) {
  __shared__ simt::Shared<float, kThreads / 32> warps;
  x += static_cast<int64_t>(blockIdx.x) * columns;
  float sum = 0;
  for (int c = threadIdx.x; c < columns; c += kThreads) {
    sum += simt::ToFloat(x[c]);
  }
#pragma unroll
  for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(kAll, sum, i);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = warps[0] + warps[1];
}

}  // namespace

template <typename T>
absl::Status RowSumsCuda(const T* x, int rows, int columns, float* sums,
                         CudaStream stream) {
  return simt::Launch("row_sums", RowSums<T>, dim3(rows), dim3(kThreads),
                      stream, x, columns, sums);
}

template absl::Status RowSumsCuda(const float*, int, int, float*, CudaStream);
template absl::Status RowSumsCuda(const BFloat16*, int, int, float*,
                                  CudaStream);
template absl::Status RowSumsCuda(const Float16*, int, int, float*, CudaStream);

}  // namespace sfmamba::kernels
