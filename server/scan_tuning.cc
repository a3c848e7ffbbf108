#include "server/scan_tuning.h"

#include <cstdio>

#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "server/repository/model_repository.h"

namespace sfmamba::server {

model::ScanTuner::Options ScanTunerOptions(const v1::ServerConfig& config,
                                           observability::Logger* log) {
  model::ScanTuner::Options options;
  options.path = config.fold_table();
  options.budget = config.deterministic()
                       ? absl::ZeroDuration()
                       : base::FromProto(config.tune_budget());
  options.measured = [log](const model::ScanMeasurement& measurement) {
    log->Info(observability::LogModule::kModels, "scans are measured",
              {{"unknown", measurement.unknown},
               {"measured", measurement.measured},
               {"seconds", absl::ToDoubleSeconds(measurement.time)}});
  };
  options.failed = [log](const absl::Status& status) {
    log->Warning(observability::LogModule::kModels,
                 "scans are not tuned as configured",
                 {{"error", status.message()}});
  };
  return options;
}

absl::StatusOr<std::vector<model::ModelToTune>> ModelsToTune(
    const v1::ServerConfig& config) {
  observability::Logger log(stderr, observability::LogLevel::kError,
                            observability::LogFormat::kText);
  std::vector<model::ModelToTune> models;
  const absl::Status status = repository::ForEachServed(
      config, &log,
      [&models](const repository::ModelVersion&,
                const repository::ModelDirectory& directory) {
        models.push_back({directory.config, directory.batch.max_batch_size});
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return models;
}

}  // namespace sfmamba::server
