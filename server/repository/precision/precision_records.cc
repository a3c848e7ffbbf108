#include "server/repository/precision/precision_records.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/settings/replace_file.h"

namespace sfmamba::repository {
namespace {

constexpr size_t kMostRecords = 256;
constexpr size_t kMostBytes = 64 << 10;  // Most bytes read of a file.
constexpr char kReduced[] = "BF16: ";
constexpr char kFull[] = "FP32: ";

// Returns the first lines of a file, which must equal the key's.
std::string ToText(const PrecisionKey& key) {
  return absl::StrCat("sfmamba precision 1\ncontent ", key.content, "\ndevice ",
                      key.device, "\nbuild ", key.build, "\n");
}

// Reads what Write() has written for `key`; nothing if `text` is anything else,
// such as another build's record.
std::optional<PrecisionCheck> Parse(absl::string_view key,
                                    absl::string_view text) {
  PrecisionCheck check;
  if (!absl::ConsumePrefix(&text, key)) return std::nullopt;
  check.allowed = absl::ConsumePrefix(&text, kReduced);
  if (!check.allowed && !absl::ConsumePrefix(&text, kFull)) return std::nullopt;
  if (!absl::ConsumeSuffix(&text, "\n") || absl::StrContains(text, '\n')) {
    return std::nullopt;
  }
  check.figures = std::string(text);
  return check;
}

std::string ReadStart(const std::string& path) {
  std::string text(kMostBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), text.size());
  text.resize(file.gcount());
  return text;
}

}  // namespace

std::optional<PrecisionCheck> PrecisionRecords::Read(const std::string& model,
                                                     const PrecisionKey& key) {
  const std::string text = ToText(key);
  {
    absl::MutexLock lock(&mu_);
    for (const Record& record : records_) {
      if (record.key == text) return record.check;
    }
  }
  if (folder_.empty()) return std::nullopt;
  return Parse(text, ReadStart(Path(model)));
}

void PrecisionRecords::Write(const std::string& model, const PrecisionKey& key,
                             const PrecisionCheck& check) {
  const std::string text = ToText(key);
  {
    absl::MutexLock lock(&mu_);
    records_.remove_if([&](const Record& r) { return r.key == text; });
    records_.push_front({text, check});
    if (records_.size() > kMostRecords) records_.pop_back();
  }
  if (folder_.empty()) return;
  std::error_code ignored;  // ReplaceFile() fails then, and says so.
  std::filesystem::create_directories(folder_, ignored);
  const absl::Status status = server::ReplaceFile(
      Path(model),
      absl::StrCat(text, check.allowed ? kReduced : kFull,
                   absl::StrReplaceAll(check.figures, {{"\n", " "}}), "\n"));
  if (status.ok()) return;
  log_.Warning(observability::LogModule::kModels,
               "the check of a precision is not kept",
               {{"model", model}, {"error", status.message()}});
}

std::string PrecisionRecords::Path(const std::string& model) const {
  return absl::StrCat(
      folder_, "/",
      absl::StrReplaceAll(model, {{"models/", ""}, {"/versions/", "-"}}),
      ".precision");
}

}  // namespace sfmamba::repository
