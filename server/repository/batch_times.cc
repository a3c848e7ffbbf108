#include "server/repository/batch_times.h"

#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace sfmamba::repository {
namespace {

// Networks that are remembered.
constexpr size_t kMostRecords = 32;

std::string ToText(const batching::BatchProfileKey& key) {
  return batching::BatchProfileText(key, {});
}

}  // namespace

std::vector<batching::BatchTime> BatchTimes::Read(
    const std::string& model, const batching::BatchProfileKey& key) {
  {
    absl::MutexLock lock(&mu_);
    const std::string text = ToText(key);
    for (const Record& record : records_) {
      if (record.key == text) return record.times;
    }
  }
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
                       const std::vector<batching::BatchTime>& times) {
  if (times.empty()) return;
  Remember(key, times);
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

void BatchTimes::Remember(const batching::BatchProfileKey& key,
                          const std::vector<batching::BatchTime>& times) {
  absl::MutexLock lock(&mu_);
  const std::string text = ToText(key);
  records_.remove_if([&](const Record& record) { return record.key == text; });
  records_.push_front({text, times});
  if (records_.size() > kMostRecords) records_.pop_back();
}

std::string BatchTimes::Path(const std::string& model) const {
  return absl::StrCat(
      folder_, "/",
      absl::StrReplaceAll(model, {{"models/", ""}, {"/versions/", "-"}}),
      ".times");
}

}  // namespace sfmamba::repository
