#include "server/gpus.h"

namespace sfmamba::server {
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

absl::StatusOr<tuning::ScanDevice> ScanDeviceOfGpu(int) {
  return absl::FailedPreconditionError(kNoCuda);
}

absl::StatusOr<tuning::MeasureScan> MakeGpuScanTimer(int) {
  return absl::FailedPreconditionError(kNoCuda);
}

}  // namespace sfmamba::server
