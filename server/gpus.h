#ifndef SFMAMBA_SERVER_GPUS_H_
#define SFMAMBA_SERVER_GPUS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/tuning/scan_plan_table.h"
#include "model/tuning/scan_search.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// What a search for CUDA devices found.
struct FoundGpus {
  std::vector<std::string> names;  // By number: "NVIDIA H200".
  std::string why_none;            // If there are none.
};

// The devices that models are loaded on; none: the CPU. FAILED_PRECONDITION,
// naming what was found, if the config asks for one that is not there.
absl::StatusOr<std::vector<int>> ChooseGpus(const v1::ServerConfig& config,
                                            const FoundGpus& found);

// ---- What differs between builds with and without CUDA ----

FoundGpus FindGpus();

// Of the CUDA runtime, such as "13.0"; empty: built without.
std::string CudaVersion();

// A device as fold tables name it, and what measures scans on it, for the
// calling thread.
absl::StatusOr<tuning::ScanDevice> ScanDeviceOfGpu(int gpu);
absl::StatusOr<tuning::MeasureScan> MakeGpuScanTimer(int gpu);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_GPUS_H_
