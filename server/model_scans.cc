#include "server/model_scans.h"

#include <cstdio>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_repository.h"

namespace sfmamba::server {

absl::StatusOr<std::vector<tuning::ScanShape>> ScansOf(
    const v1::ServerConfig& config) {
  observability::Metrics metrics{observability::BuildInfo()};
  observability::Logger log(stderr, observability::LogLevel::kError,
                            observability::LogFormat::kText);
  repository::ModelRepository repository(repository::RepositoryOptions(config),
                                         nullptr, &metrics, &log);
  const absl::Status scanned = repository.Scan();
  if (!scanned.ok()) return scanned;
  std::vector<tuning::ScanShape> scans;
  absl::flat_hash_set<std::string> seen;
  for (const auto& version : repository.List()) {
    const absl::StatusOr<repository::ModelDirectory> directory =
        repository::ReadModelDirectory(version->path(), config.random_init());
    if (!directory.ok()) {
      return absl::Status(
          directory.status().code(),
          absl::StrCat(version->name(), ": ", directory.status().message()));
    }
    for (const tuning::ScanShape& scan : tuning::ScanShapes(
             directory->config, directory->batch.max_batch_size)) {
      if (seen.insert(tuning::ToString(scan)).second) scans.push_back(scan);
    }
  }
  return scans;
}

}  // namespace sfmamba::server
