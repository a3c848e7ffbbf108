#include "server/host/gpus.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace sfmamba::server {
namespace {

std::string Describe(const model::FoundGpus& found) {
  if (found.names.empty()) return absl::StrCat("none: ", found.why_none);
  std::string text;
  for (size_t i = 0; i < found.names.size(); ++i) {
    const auto unusable = found.unusable.find(i);
    absl::StrAppend(&text, i == 0 ? "" : ", ", i, " (", found.names[i],
                    unusable == found.unusable.end() ? "" : ": ",
                    unusable == found.unusable.end() ? "" : unusable->second,
                    ")");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::vector<int>> ChooseGpus(const v1::ServerConfig& config,
                                            const model::FoundGpus& found) {
  if (config.device() == "cpu") return std::vector<int>();
  if (config.device() == "auto" && found.names.empty() &&
      config.gpus().empty()) {
    return std::vector<int>();
  }
  std::vector<int> gpus(config.gpus().begin(), config.gpus().end());
  for (int i = 0; config.gpus().empty() && i < found.names.size(); ++i) {
    if (found.unusable.count(i) == 0) gpus.push_back(i);
  }
  if (gpus.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device: got cuda, expected a usable GPU; found ", Describe(found)));
  }
  for (int gpu : gpus) {
    if (gpu >= found.names.size() || found.unusable.count(gpu) > 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "gpus: got ", gpu, ", expected a usable one of those found; found ",
          Describe(found)));
    }
  }
  return gpus;
}

}  // namespace sfmamba::server
