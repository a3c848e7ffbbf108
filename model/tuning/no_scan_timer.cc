#include "model/tuning/scan_timer.h"

// A build without CUDA has no device to measure on.
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
