#include "model/engine/found_gpus.h"

#include "absl/strings/str_cat.h"

namespace sfmamba::engine {
namespace {

constexpr int kLeastMajor = 8;

std::string WhyUnusable(const GpuProperties& gpu) {
  if (!gpu.error.empty()) return gpu.error;
  if (gpu.major >= kLeastMajor) return "";
  return absl::StrCat("got compute capability ", gpu.major, ".", gpu.minor,
                      ", expected at least ", kLeastMajor, ".0");
}

}  // namespace

model::FoundGpus SortOut(const std::vector<GpuProperties>& gpus) {
  model::FoundGpus found;
  for (const GpuProperties& gpu : gpus) {
    const int index = static_cast<int>(found.names.size());
    const std::string why = WhyUnusable(gpu);
    found.names.push_back(gpu.name);
    if (why.empty()) continue;
    found.unusable[index] = why;
    absl::StrAppend(&found.why_none, index > 0 ? "; " : "", "GPU ", index, " (",
                    gpu.name, "): ", why);
  }
  if (gpus.empty()) return {{}, "the driver knows no device", {}};
  if (found.unusable.size() == gpus.size()) return {{}, found.why_none, {}};
  found.why_none.clear();
  return found;
}

}  // namespace sfmamba::engine
