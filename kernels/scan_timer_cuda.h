#ifndef SFMAMBA_KERNELS_SCAN_TIMER_CUDA_H_
#define SFMAMBA_KERNELS_SCAN_TIMER_CUDA_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/fold_plan.h"
#include "kernels/scan_tuner.h"

namespace sfmamba {

// The device number `gpu`, as a fold table names it.
absl::StatusOr<ScanDevice> ScanDeviceOf(int gpu);

// TuneScans of scan_tuner.h with scans of random inputs on that device: of each
// plan the median of up to 200 measurements. Makes the device current to the
// calling thread.
absl::StatusOr<FoldTable> TuneScans(int gpu, absl::Span<const ScanShape> shapes,
                                    const TuneOptions& options = {});

}  // namespace sfmamba

#endif  // SFMAMBA_KERNELS_SCAN_TIMER_CUDA_H_
