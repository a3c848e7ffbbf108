#include "model/tuning/scan_timer.h"

// In a build without CUDA, there is no device to measure.
namespace sfmamba::tuning {
namespace {

absl::Status NoCuda() {
  return absl::FailedPreconditionError(
      "scans cannot be measured: this build has no CUDA, it needs bazel build "
      "--config=cuda");
}

}  // namespace

absl::StatusOr<ScanDevice> ScanDeviceOf(int) { return NoCuda(); }

absl::StatusOr<MeasureScan> MakeScanTimer(int) { return NoCuda(); }

}  // namespace sfmamba::tuning
