#include "server/repository/kept_texts.h"

#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/settings/textproto.h"

namespace sfmamba::repository {
namespace {

// A folder may hold files of others.
constexpr size_t kMaxBytes = 4 << 20;

}  // namespace

std::string KeyOf(absl::string_view what, absl::string_view network,
                  absl::string_view device, absl::string_view build) {
  return absl::StrCat("sfmamba ", what, "\ncontent ", network, "\ndevice ",
                      device, "\nbuild ", build, "\n");
}

std::optional<std::string> KeptTexts::Read(const std::string& model,
                                           absl::string_view key) {
  {
    absl::MutexLock lock(&mu_);
    for (const Record& record : records_) {
      if (record.key == key) return record.text;
    }
  }
  if (folder_.empty()) return std::nullopt;
  const absl::StatusOr<std::string> file =
      server::ReadTextFile("record", Path(model), kMaxBytes);
  if (!file.ok() || !absl::StartsWith(*file, key)) return std::nullopt;
  return file->substr(key.size());
}

void KeptTexts::Write(const std::string& model, absl::string_view key,
                      const std::string& text) {
  {
    absl::MutexLock lock(&mu_);
    records_.remove_if([&](const Record& record) { return record.key == key; });
    records_.push_front({std::string(key), text});
    if (records_.size() > kMostTexts) records_.pop_back();
  }
  if (folder_.empty()) return;
  std::error_code ignored;  // The file cannot be written either then.
  std::filesystem::create_directories(folder_, ignored);
  const absl::Status status =
      server::ReplaceFile(Path(model), absl::StrCat(key, text));
  if (status.ok()) return;
  log_.Warning(observability::LogModule::kModels,
               "the times of batches are not kept",
               {{"model", model}, {"error", status.message()}});
}

std::string KeptTexts::Path(const std::string& model) const {
  return absl::StrCat(
      folder_, "/",
      absl::StrReplaceAll(model, {{"models/", ""}, {"/versions/", "-"}}),
      ".times");
}

}  // namespace sfmamba::repository
