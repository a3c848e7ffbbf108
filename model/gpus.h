#ifndef SFMAMBA_MODEL_GPUS_H_
#define SFMAMBA_MODEL_GPUS_H_

#include <string>
#include <vector>

namespace sfmamba::model {

// The result of a search for CUDA devices.
struct FoundGpus {
  std::vector<std::string> names;  // By index, such as "NVIDIA H200".
  std::string why_none;            // The reason if there are none.
};

FoundGpus FindGpus();

// Returns the version of the CUDA runtime, such as "13.0", or an empty text in
// a build without CUDA.
std::string CudaVersion();

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_GPUS_H_
