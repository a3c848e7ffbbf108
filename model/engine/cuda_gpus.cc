#include <cuda_runtime_api.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "model/engine/found_gpus.h"
#include "model/gpus.h"

namespace sfmamba::model {

FoundGpus FindGpus() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) return {{}, cudaGetErrorString(counted), {}};
  std::vector<engine::GpuProperties> gpus;
  for (int gpu = 0; gpu < count; ++gpu) {
    cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, gpu);
    if (error == cudaSuccess) {
      gpus.push_back({properties.name, properties.major, properties.minor, ""});
    } else {
      gpus.push_back({"unknown", 0, 0, cudaGetErrorString(error)});
    }
  }
  return engine::SortOut(gpus);
}

std::string CudaVersion() {
  int version = 0;  // 1000 * major + 10 * minor.
  cudaRuntimeGetVersion(&version);
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace sfmamba::model
