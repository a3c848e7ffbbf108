#ifndef SFMAMBA_SERVER_GPUS_H_
#define SFMAMBA_SERVER_GPUS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/scan_shapes.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba {

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

// Measures the scans on a device and writes the fold table of it to `path`.
absl::Status TuneGpu(int gpu, absl::Span<const ScanShape> scans,
                     const std::string& path);

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_GPUS_H_
