#include "server/model_scans.h"

#include <cstdio>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_repository.h"

namespace sfmamba {

absl::StatusOr<std::vector<ScanShape>> ScansOf(const v1::ServerConfig& config) {
  Metrics metrics{BuildInfo()};
  Logger log(stderr, LogLevel::kError, LogFormat::kText);
  ModelRepository repository(RepositoryOptions(config), nullptr, &metrics,
                             &log);
  const absl::Status scanned = repository.Scan();
  if (!scanned.ok()) return scanned;
  std::vector<ScanShape> scans;
  absl::flat_hash_set<std::string> seen;
  for (const auto& version : repository.List()) {
    const absl::StatusOr<ModelDirectory> directory =
        ReadModelDirectory(version->path(), config.random_init());
    if (!directory.ok()) {
      return absl::Status(
          directory.status().code(),
          absl::StrCat(version->name(), ": ", directory.status().message()));
    }
    for (const ScanShape& scan :
         ScanShapes(directory->config, directory->batch.max_batch_size)) {
      if (seen.insert(ToString(scan)).second) scans.push_back(scan);
    }
  }
  return scans;
}

}  // namespace sfmamba
