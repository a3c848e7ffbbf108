#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "c10/cuda/CUDACachingAllocator.h"
#include "tests/gpu/device.h"

namespace sfmamba {

double DeviceMib() {
  size_t available = 0, all = 0;
  if (cudaMemGetInfo(&available, &all) != cudaSuccess) return 0;
  return double(all - available) / (1 << 20);
}

void ReleaseCachedMemory() { c10::cuda::CUDACachingAllocator::emptyCache(); }

void StartProfiler() {
  cudaDeviceSynchronize();
  cudaProfilerStart();
}

void StopProfiler() {
  cudaDeviceSynchronize();
  cudaProfilerStop();
}

}  // namespace sfmamba
