#include "model/engine/found_gpus.h"

#include "gtest/gtest.h"

namespace sfmamba::engine {
namespace {

const GpuProperties kT4{"Tesla T4", 7, 5, ""};
const GpuProperties kA100{"NVIDIA A100", 8, 0, ""};
const GpuProperties kB200{"NVIDIA B200", 10, 0, ""};
const GpuProperties kLost{"unknown", 0, 0, "GPU is lost"};

TEST(SortOutTest, GpusThatTheKernelsRunOnAreUsed) {
  const model::FoundGpus found = SortOut({kA100, kB200});
  EXPECT_EQ(found.names,
            std::vector<std::string>({"NVIDIA A100", "NVIDIA B200"}));
  EXPECT_TRUE(found.unusable.empty());
  EXPECT_EQ(found.why_none, "");
}

TEST(SortOutTest, TheOthersKeepTheirIndicesAndHaveAReason) {
  const model::FoundGpus found = SortOut({kT4, kA100, kLost});
  EXPECT_EQ(found.names.size(), 3);
  EXPECT_EQ(found.unusable.size(), 2);
  EXPECT_EQ(found.unusable.at(0),
            "got compute capability 7.5, expected at least 8.0");
  EXPECT_EQ(found.unusable.at(2), "GPU is lost");
  EXPECT_EQ(found.why_none, "");
}

TEST(SortOutTest, IfNoneCanBeUsedThereAreNone) {
  const model::FoundGpus found = SortOut({kT4, kLost});
  EXPECT_TRUE(found.names.empty());
  EXPECT_TRUE(found.unusable.empty());
  EXPECT_EQ(found.why_none,
            "GPU 0 (Tesla T4): got compute capability 7.5, expected at least "
            "8.0; GPU 1 (unknown): GPU is lost");
  EXPECT_EQ(SortOut({}).why_none, "the driver knows no device");
}

}  // namespace
}  // namespace sfmamba::engine
