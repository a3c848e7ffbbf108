#ifndef SFMAMBA_MODEL_GPUS_H_
#define SFMAMBA_MODEL_GPUS_H_

#include <map>
#include <string>
#include <vector>

namespace sfmamba::model {

// The result of a search for CUDA devices. If no device can be used, `names` is
// empty and `why_none` gives the reasons.
struct FoundGpus {
  std::vector<std::string> names;  // By index, such as "NVIDIA H200".
  std::string why_none;            // Why `names` is empty.
  // The reasons why models cannot run on some of the GPUs. The key is an index
  // into `names`. At least one GPU in `names` can be used.
  std::map<int, std::string> unusable;
};

FoundGpus FindGpus();

// Returns the version of the CUDA runtime, such as "13.0". Returns "" in a
// build without CUDA.
std::string CudaVersion();

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_GPUS_H_
