#ifndef SFMAMBA_SERVER_SERVER_MAIN_H_
#define SFMAMBA_SERVER_SERVER_MAIN_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/gpus.h"
#include "model/scan_tuning.h"
#include "model/vision_model.h"
#include "server/observability/metrics.h"

namespace sfmamba::server {

// What the server's command needs from below. Tests put a faulty one in its
// place.
struct Engine {
  observability::BuildInfo build;
  // What is wrong with the environment variables that it reads.
  std::function<absl::Status()> check_environment = [] {
    return absl::OkStatus();
  };
  std::function<model::FoundGpus()> find_gpus;
  std::function<absl::StatusOr<std::unique_ptr<model::VisionModel>>(
      const model::ModelConfig& config,
      absl::Span<const std::string> weights_paths,
      const model::ModelOptions& options)>
      load;  // Without paths the weights are random.
  std::function<absl::StatusOr<std::unique_ptr<model::ScanTuner>>(
      int gpu, const model::ScanTuner::Options& options)>
      make_scan_tuner;
  std::function<absl::StatusOr<model::ScanMeasurement>(
      int gpu, absl::Span<const model::ModelToTune> models,
      const std::string& path)>
      tune_scans;
  std::function<void(int threads)> set_compute_threads;
  std::function<void()> compute_alone = [] {};
  // Called again and again: gives the system memory that models keep for the
  // next batch and have not used for long.
  std::function<void()> release_memory = [] {};
};

// The command: flags to options, signals to Shutdown. The exit code: 0 clean, 1
// internal error, 2 bad flags or configuration, 3 a model did not load, 4 a
// port cannot be bound, 5 no usable device, 6 drain_timeout has passed, 7 a
// device has failed for good, 8 the gRPC port takes no new connections, 128 + n
// ended at once by a second signal n.
//
// Before the process has any other thread.
int ServerMain(int argc, char** argv, const Engine& engine);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SERVER_MAIN_H_
