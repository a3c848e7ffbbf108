#include "model/scan_tuning.h"

#include <string>

#include "gtest/gtest.h"

namespace sfmamba::model {
namespace {

// The number of a GPU that no machine has.
constexpr int kNoGpu = 1 << 20;

TEST(ScanTunerTest, AGpuThatThereIsNotIsAnError) {
  EXPECT_FALSE(ScanTuner::Create(kNoGpu, {}).ok());
}

TEST(TuneScansTest, AGpuThatThereIsNotIsAnError) {
  const std::string path = testing::TempDir() + "/table";
  EXPECT_FALSE(
      TuneScans(kNoGpu, {{*VariantConfig("sf_mamba_t"), 8}}, path).ok());
}

}  // namespace
}  // namespace sfmamba::model
