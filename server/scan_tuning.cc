#include "server/scan_tuning.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "server/observability/metrics.h"
#include "server/repository/model_directory.h"
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
  observability::Metrics metrics{observability::BuildInfo()};
  observability::Logger log(stderr, observability::LogLevel::kError,
                            observability::LogFormat::kText);
  repository::ModelRepository repository(repository::RepositoryOptions(config),
                                         nullptr, &metrics, &log);
  const absl::Status scanned = repository.Scan();
  if (!scanned.ok()) return scanned;
  std::vector<model::ModelToTune> models;
  for (const auto& version : repository.List()) {
    const absl::StatusOr<repository::ModelDirectory> directory =
        repository::ReadModelDirectory(version->path(), config.random_init());
    if (!directory.ok()) {
      return absl::Status(
          directory.status().code(),
          absl::StrCat(version->name(), ": ", directory.status().message()));
    }
    models.push_back({directory->config, directory->batch.max_batch_size});
  }
  return models;
}

}  // namespace sfmamba::server
