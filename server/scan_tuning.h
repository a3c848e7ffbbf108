#ifndef SFMAMBA_SERVER_SCAN_TUNING_H_
#define SFMAMBA_SERVER_SCAN_TUNING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "model/scan_tuning.h"
#include "server/observability/log.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// Returns the options of the scan tuner. For each scan (the recurrence in a
// Mamba layer) of a model, the tuner measures several ways to run it on a GPU
// and finds the fastest. The tuner reports to `log`, which must outlive the
// tuner. If the setting `deterministic` in `config` is true, the tuner measures
// nothing.
model::ScanTuner::Options ScanTunerOptions(const v1::ServerConfig& config,
                                           observability::Logger* log);

// Returns the models that a server with this configuration would load. An error
// contains the model's name.
absl::StatusOr<std::vector<model::ModelToTune>> ModelsToTune(
    const v1::ServerConfig& config);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SCAN_TUNING_H_
