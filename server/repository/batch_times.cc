#include "server/repository/batch_times.h"

#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace sfmamba::repository {

std::vector<batching::BatchTime> BatchTimes::Read(
    const std::string& model, const batching::BatchProfileKey& key) const {
  if (folder_.empty()) return {};
  absl::StatusOr<std::vector<batching::BatchTime>> times =
      batching::ReadBatchProfile(key, Path(model));
  if (times.ok()) return *std::move(times);
  log_.Info(observability::LogModule::kModels,
            "the times of batches are measured",
            {{"model", model}, {"why", times.status().message()}});
  return {};
}

void BatchTimes::Write(const std::string& model,
                       const batching::BatchProfileKey& key,
                       const std::vector<batching::BatchTime>& times) const {
  if (folder_.empty()) return;
  std::error_code ignored;  // The file cannot be written either then.
  std::filesystem::create_directories(folder_, ignored);
  const absl::Status status =
      batching::WriteBatchProfile(key, times, Path(model));
  if (status.ok()) return;
  log_.Warning(observability::LogModule::kModels,
               "the times of batches are not kept",
               {{"model", model}, {"error", status.message()}});
}

std::string BatchTimes::Path(const std::string& model) const {
  return absl::StrCat(
      folder_, "/",
      absl::StrReplaceAll(model, {{"models/", ""}, {"/versions/", "-"}}),
      ".times");
}

}  // namespace sfmamba::repository
