#ifndef SFMAMBA_MODEL_TUNING_SCAN_TIMER_H_
#define SFMAMBA_MODEL_TUNING_SCAN_TIMER_H_

#include "absl/status/statusor.h"
#include "model/tuning/scan_plan_table.h"
#include "model/tuning/scan_search.h"

namespace sfmamba::tuning {

// In a build without CUDA, these functions return FAILED_PRECONDITION.

// Returns the ScanDevice of CUDA device `gpu`.
absl::StatusOr<ScanDevice> ScanDeviceOf(int gpu);

// Returns a function that times scans of random inputs on CUDA device `gpu`.
// The function returns the median of up to 20 measurements, each of 10 scans.
// Only the calling thread may call the function, because the device becomes
// current only in this thread. The function retains device memory for the last
// shape.
absl::StatusOr<MeasureScan> MakeScanTimer(int gpu);

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_TIMER_H_
