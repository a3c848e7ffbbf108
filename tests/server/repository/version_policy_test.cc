#include "server/repository/version_policy.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

class VersionPolicyTest : public testing::Test {
 protected:
  VersionPolicyTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  void Write(const std::string& text) {
    std::ofstream(folder_ / kPolicyFile) << text;
  }

  absl::StatusOr<v1::VersionPolicy> Read() const {
    return ReadVersionPolicy({folder_.string(), ""});
  }

  std::set<int64_t> Wanted(const std::set<int64_t>& versions) {
    const auto policy = Read();
    EXPECT_TRUE(policy.ok()) << policy.status();
    return WantedBy(*policy, versions);
  }

  const fs::path folder_;
};

TEST_F(VersionPolicyTest, WithoutAFileTheLatestIsWanted) {
  EXPECT_EQ(Wanted({1, 9, 10}), std::set<int64_t>({10}));
  EXPECT_EQ(Wanted({}), std::set<int64_t>());
}

TEST_F(VersionPolicyTest, WantsWhatTheFileSays) {
  Write("latest: 2");
  EXPECT_EQ(Wanted({1, 9, 10}), std::set<int64_t>({9, 10}));
  EXPECT_EQ(Wanted({7}), std::set<int64_t>({7}));
  Write("all: true");
  EXPECT_EQ(Wanted({1, 9, 10}), std::set<int64_t>({1, 9, 10}));
  Write("specific: [ 10, 1, 77 ]");
  EXPECT_EQ(Wanted({1, 9, 10}), std::set<int64_t>({1, 10}));
}

TEST_F(VersionPolicyTest, RefusesWhatItDoesNotUnderstand) {
  for (const char* text :
       {"latest: 0 all: maybe", "newest: 2", "latest: -1", "latest: 1025",
        "specific: 0", "specific: -3", "latest: 1 all: true",
        "all: true specific: 1", "labels { key: '' value: 1 }",
        "labels { key: 'a/b' value: 1 }",
        "labels { key: 'stable' value: 0 }"}) {
    Write(text);
    const absl::Status status = Read().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find(kPolicyFile), std::string::npos) << status;
    EXPECT_EQ(status.message().find(folder_.string()), std::string::npos);
  }
}

TEST_F(VersionPolicyTest, MayHave64Labels) {
  std::string text;
  for (int i = 0; i < 64; ++i) {
    text += "labels { key: 'l" + std::to_string(i) + "' value: 1 }\n";
  }
  Write(text);
  EXPECT_TRUE(Read().ok()) << Read().status();
  Write(text + "labels { key: 'stable' value: 1 }");
  EXPECT_EQ(Read().status().message(),
            "policy.textproto: labels: got 65, expected at most 64");
}

TEST_F(VersionPolicyTest, MayHave64KiB) {
  const std::string text = "latest: 2";
  Write(text + std::string((64 << 10) - text.size(), '\n'));
  EXPECT_EQ(Wanted({1, 2, 3}), std::set<int64_t>({2, 3}));
  Write(text + std::string((64 << 10) - text.size() + 1, '\n'));
  EXPECT_EQ(Read().status().message(),
            "policy.textproto: got more than 65536 bytes, expected at most "
            "that");
}

TEST_F(VersionPolicyTest, ReadsLabels) {
  Write("latest: 2 labels { key: 'stable' value: 3 }");
  const auto policy = Read();
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->labels().at("stable"), 3);
}

TEST_F(VersionPolicyTest, ARemovedFieldNamesItsReplacement) {
  Write("latest: 2 canary_percent: 10");
  EXPECT_THAT(std::string(Read().status().message()),
              testing::HasSubstr("canary_percent was removed: divide"));
}

TEST_F(VersionPolicyTest, R1ALinkMustEndInTheRepository) {
  fs::create_directories(folder_ / "m");
  std::ofstream(folder_ / "elsewhere") << "all: true";
  fs::create_symlink("../elsewhere", folder_ / "m" / kPolicyFile);
  const std::string root = fs::canonical(folder_).string();
  const auto policy = ReadVersionPolicy({root + "/m", root});
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_TRUE(policy->all());
  EXPECT_EQ(ReadVersionPolicy({root + "/m", root + "/m"}).status().message(),
            "policy.textproto: lies outside the model repository");
  fs::remove(folder_ / "elsewhere");
  EXPECT_FALSE(ReadVersionPolicy({root + "/m", root}).ok()) << "not a default";
}

}  // namespace
}  // namespace sfmamba::repository
