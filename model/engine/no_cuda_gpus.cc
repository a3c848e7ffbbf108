#include "model/gpus.h"

namespace sfmamba::model {

FoundGpus FindGpus() {
  FoundGpus found;
  found.why_none = "this build has no CUDA, it needs bazel build --config=cuda";
  return found;
}

std::string CudaVersion() { return ""; }

}  // namespace sfmamba::model
