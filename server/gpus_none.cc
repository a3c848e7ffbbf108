#include "server/gpus.h"

namespace sfmamba {
namespace {

constexpr char kNoCuda[] =
    "this build has no CUDA, it needs bazel build --config=cuda";

}  // namespace

FoundGpus FindGpus() {
  FoundGpus found;
  found.why_none = kNoCuda;
  return found;
}

std::string CudaVersion() { return ""; }

absl::Status TuneGpu(int, absl::Span<const ScanShape>, const std::string&) {
  return absl::FailedPreconditionError(kNoCuda);
}

}  // namespace sfmamba
