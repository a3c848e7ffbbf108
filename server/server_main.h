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

// The functions of the model layer that ServerMain() needs. Tests replace these
// functions to inject faults.
struct Engine {
  observability::BuildInfo build;
  // Returns an error if an environment variable that the model layer reads has
  // an invalid value.
  std::function<absl::Status()> check_environment = [] {
    return absl::OkStatus();
  };
  std::function<model::FoundGpus()> find_gpus;
  // Loads a model from files. If `weights_paths` is empty, the model has random
  // weights.
  std::function<absl::StatusOr<std::unique_ptr<model::VisionModel>>(
      const model::ModelConfig& config,
      absl::Span<const std::string> weights_paths,
      const model::ModelOptions& options)>
      load;
  std::function<absl::StatusOr<std::unique_ptr<model::ScanTuner>>(
      int gpu, const model::ScanTuner::Options& options)>
      make_scan_tuner;
  std::function<absl::StatusOr<model::ScanMeasurement>(
      int gpu, absl::Span<const model::ModelToTune> models,
      const std::string& path)>
      tune_scans;
  std::function<void(int threads)> set_compute_threads;
  std::function<void()> compute_alone = [] {};
  // Called periodically. Must free the memory that models keep for their next
  // batch, if no batch has used this memory for a long time.
  std::function<void()> release_memory = [] {};
};

// Runs the program sfmamba_server. Converts its flags to options, starts the
// server and calls Shutdown() after a signal. Some flags, such as --tune, do
// another job instead of serving. Returns one of these exit codes:
//   0        stopped normally
//   1        internal error
//   2        wrong flag or configuration
//   3        a model did not load
//   4        a port cannot be bound
//   5        no usable device
//   6        drain_timeout has passed
//   7        a device has failed permanently
//   128 + n  ended immediately by a second signal, which has the number n
//
// Must be called before the process has any other thread.
int ServerMain(int argc, char** argv, const Engine& engine);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SERVER_MAIN_H_
