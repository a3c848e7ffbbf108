#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "model/gpus.h"

namespace sfmamba::model {

FoundGpus FindGpus() {
  FoundGpus found;
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  for (int gpu = 0; error == cudaSuccess && gpu < count; ++gpu) {
    cudaDeviceProp properties;
    error = cudaGetDeviceProperties(&properties, gpu);
    if (error == cudaSuccess) found.names.push_back(properties.name);
  }
  if (error != cudaSuccess) {
    found.names.clear();
    found.why_none = cudaGetErrorString(error);
  } else if (count == 0) {
    found.why_none = "the driver knows no device";
  }
  return found;
}

std::string CudaVersion() {
  int version = 0;  // 1000 * major + 10 * minor.
  cudaRuntimeGetVersion(&version);
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace sfmamba::model
