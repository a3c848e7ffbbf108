#include "model/torch_runtime.h"

#include "ATen/Parallel.h"
#include "kernels/simd/cpu_features.h"
#include "model/ops/parallel.h"
#include "torch/headeronly/version.h"

namespace sfmamba::model {

std::string TorchVersion() { return TORCH_VERSION; }

absl::Status CheckEnvironment() {
  const std::string error = kernels::CpuIsaError();
  return error.empty() ? absl::OkStatus() : absl::InvalidArgumentError(error);
}

void SetComputeThreads(int threads) { at::set_num_threads(threads); }

void ComputeAlone() { ops::ComputeAlone(); }

}  // namespace sfmamba::model
