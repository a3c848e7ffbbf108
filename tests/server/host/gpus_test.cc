#include "server/host/gpus.h"

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

v1::ServerConfig Config(const std::string& device, std::vector<int> gpus = {}) {
  v1::ServerConfig config;
  config.set_device(device);
  config.mutable_gpus()->Assign(gpus.begin(), gpus.end());
  return config;
}

const model::FoundGpus kNone = {{}, "there is no driver"};
const model::FoundGpus kTwo = {{"A", "B"}, ""};

TEST(ChooseGpusTest, AutoTakesWhatIsThere) {
  EXPECT_EQ(*ChooseGpus(Config("auto"), kNone), std::vector<int>());
  EXPECT_EQ(*ChooseGpus(Config("auto"), kTwo), std::vector<int>({0, 1}));
  EXPECT_EQ(*ChooseGpus(Config("auto", {1}), kTwo), std::vector<int>({1}));
}

TEST(ChooseGpusTest, CpuIsTheCpu) {
  EXPECT_EQ(*ChooseGpus(Config("cpu", {0}), kTwo), std::vector<int>());
}

TEST(ChooseGpusTest, CudaTakesThoseThatAreAskedFor) {
  EXPECT_EQ(*ChooseGpus(Config("cuda"), kTwo), std::vector<int>({0, 1}));
  EXPECT_EQ(*ChooseGpus(Config("cuda", {1, 0}), kTwo),
            std::vector<int>({1, 0}));
}

TEST(ChooseGpusTest, GpusThatCannotBeUsedArePassedOver) {
  const model::FoundGpus found = {{"T4", "A100"}, "", {{0, "too old"}}};
  EXPECT_EQ(*ChooseGpus(Config("auto"), found), std::vector<int>({1}));
  EXPECT_EQ(*ChooseGpus(Config("cuda"), found), std::vector<int>({1}));
  const absl::Status asked = ChooseGpus(Config("auto", {0}), found).status();
  EXPECT_EQ(asked.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(asked.message().find("found 0 (T4: too old), 1 (A100)"),
            std::string::npos)
      << asked;
}

TEST(ChooseGpusTest, WhatIsNotThereIsAnErrorThatSaysWhatIs) {
  const absl::Status none = ChooseGpus(Config("cuda"), kNone).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(none.message().find("none: there is no driver"), std::string::npos)
      << none;
  const absl::Status third = ChooseGpus(Config("auto", {0, 2}), kTwo).status();
  EXPECT_EQ(third.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(third.message().find("got 2"), std::string::npos) << third;
  EXPECT_NE(third.message().find("0 (A), 1 (B)"), std::string::npos) << third;
  EXPECT_FALSE(ChooseGpus(Config("auto", {0}), kNone).ok());
}

}  // namespace
}  // namespace sfmamba::server
