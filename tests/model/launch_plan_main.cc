// Prints tables for docs/gpu_launches.md. Each table contains the launches of
// one run of sf_mamba_t, sf_mamba_s or sf_mamba_b.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "tests/model/launch_plan.h"

int main() {
  using namespace sfmamba::model;
  for (const char* variant : {"sf_mamba_t", "sf_mamba_s", "sf_mamba_b"}) {
    ModelConfig config = *VariantConfig(variant);
    config.precision = Precision::kBFloat16;
    const auto launches = LaunchesOf(config, 128);
    std::printf("### %s: %.2f ms\n\n%s\n", variant,
                ModelledMilliseconds(launches), LaunchTable(launches).c_str());
  }
}
