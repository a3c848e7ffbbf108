#include "server/host/gpus.h"

#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"

namespace sfmamba::server {
namespace {

std::string Describe(const model::FoundGpus& found) {
  if (found.names.empty()) return absl::StrCat("none: ", found.why_none);
  std::string text;
  for (size_t i = 0; i < found.names.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", i, " (", found.names[i], ")");
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
  if (gpus.empty()) {
    gpus.resize(found.names.size());
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  if (gpus.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device: got cuda, expected a usable GPU; found ", Describe(found)));
  }
  for (int gpu : gpus) {
    if (gpu >= found.names.size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "gpus: got ", gpu, ", expected one of those found; found ",
          Describe(found)));
    }
  }
  return gpus;
}

}  // namespace sfmamba::server
