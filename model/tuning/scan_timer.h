#ifndef SFMAMBA_MODEL_TUNING_SCAN_TIMER_H_
#define SFMAMBA_MODEL_TUNING_SCAN_TIMER_H_

#include "absl/status/statusor.h"
#include "model/tuning/scan_plan_table.h"
#include "model/tuning/scan_search.h"

namespace sfmamba::tuning {

// The device number `gpu`, as a fold table names it.
absl::StatusOr<ScanDevice> ScanDeviceOf(int gpu);

// Times scans of random inputs on that device, each 200 times if they are not
// slow: the median. For the calling thread, to which the device is made
// current; holds memory of the device for the shape that came last.
absl::StatusOr<MeasureScan> MakeScanTimer(int gpu);

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_TIMER_H_
