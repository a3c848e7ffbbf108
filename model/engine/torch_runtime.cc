#include "model/torch_runtime.h"

#include "ATen/Parallel.h"
#include "model/ops/parallel.h"
#include "torch/headeronly/version.h"

namespace sfmamba::model {

std::string TorchVersion() { return TORCH_VERSION; }

void SetComputeThreads(int threads) { at::set_num_threads(threads); }

void ComputeAlone() { ops::ComputeAlone(); }

}  // namespace sfmamba::model
