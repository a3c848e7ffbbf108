// Tests faults of a model's files and of the process. The models that served
// before must keep serving, and a restart must serve again.

#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "client/rpc/vision_client.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/e2e/reload/callers.h"
#include "tests/e2e/reload/versions.h"
#include "tests/e2e/server_process.h"

namespace sfmamba {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kCallTime = absl::Minutes(1);

class ReloadFaultTest : public testing::Test {
 protected:
  ReloadFaultTest() : repository_(WriteTinyModel("max_batch_size: 4")) {
    PublishVersion(repository_, "tiny", 1);
  }

  void Start(std::vector<std::string> flags = {}) {
    flags.push_back("--model_repository=" + repository_);
    flags.push_back("--model_control=explicit");
    flags.push_back("--log_level=info,requests=error");
    server_ = std::make_unique<ServerProcess>(flags);
    ASSERT_TRUE(server_->WaitUntilServing()) << server_->output();
    client_ = std::make_unique<client::VisionClient>(server_->address());
  }

  absl::Status Load(const std::string& name) {
    v1::LoadModelRequest request;
    request.set_name(name);
    return client_->LoadModel(request, kCallTime).status();
  }
  v1::Model Describe(const std::string& name) {
    const auto model = client_->GetModel(name, kCallTime);
    return model.ok() ? *model : v1::Model();
  }
  // Sends requests for "tiny", which must all be answered. Returns the version
  // that answers them.
  std::string Serves() {
    Callers callers("tiny", 1, [this] {
      return grpc::CreateChannel(server_->address(),
                                 grpc::InsecureChannelCredentials());
    });
    const Callers::Outcomes outcomes = callers.TakeNext(20);
    EXPECT_EQ(outcomes.failed(), 0) << outcomes.first_error;
    EXPECT_EQ(outcomes.answers.size(), 1u);
    return outcomes.answers.empty() ? "" : outcomes.answers.begin()->first;
  }

  // Expects that version 2 with weights damaged by `spoil` is not loaded, and
  // that version 1 keeps serving.
  void ExpectNotLoaded(void (*spoil)(const std::string& path)) {
    Start();
    PublishSpoilt(repository_, "tiny", 2, spoil);
    const absl::Status status = Load("tiny");
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("model.safetensors"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(repository_)));
    EXPECT_EQ(Serves(), "models/tiny/versions/1");
    const v1::Model second = Describe("models/tiny/versions/2");
    if (!second.name().empty()) {
      EXPECT_EQ(second.state(), v1::Model::UNAVAILABLE);
      EXPECT_THAT(second.state_reason(), HasSubstr("model.safetensors"));
    }
    // The version is published again with good weights.
    PublishVersion(repository_, "tiny", 2);
    EXPECT_TRUE(Load("tiny").ok());
    EXPECT_EQ(Serves(), "models/tiny/versions/2");
  }

  const std::string repository_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<client::VisionClient> client_;
};

TEST_F(ReloadFaultTest, CorruptWeights) {
  ExpectNotLoaded([](const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-100, std::ios::end);
    file << "corrupt";
  });
}

TEST_F(ReloadFaultTest, MissingWeights) {
  ExpectNotLoaded([](const std::string& path) { fs::remove(path); });
}

TEST_F(ReloadFaultTest, TruncatedWeights) {
  ExpectNotLoaded([](const std::string& path) {
    fs::resize_file(path, fs::file_size(path) / 2);
  });
}

// The configuration has 130 blocks, but the weights do not. The server finds
// this only after it has allocated the network.
TEST_F(ReloadFaultTest, AFailedLoadGivesItsMemoryBack) {
  Start();
  const int64_t before = server_->resident_bytes();
  PublishSpoilt(repository_, "tiny", 2, [](const std::string& path) {
    const std::string config =
        (fs::path(path).parent_path() / "config.textproto").string();
    std::stringstream text;
    text << std::ifstream(config).rdbuf();
    std::ofstream(config) << absl::StrReplaceAll(
        text.str(), {{"dim: 16", "dim: 32"}, {"2, 2]", "64, 64]"}});
  });
  EXPECT_THAT(std::string(Load("tiny").message()),
              HasSubstr("expected [32], got [16]"));
  EXPECT_GT(server_->peak_resident_bytes(), before + (150 << 20));
  EXPECT_LT(server_->resident_bytes(), before + (50 << 20));
  EXPECT_EQ(Serves(), "models/tiny/versions/1");
}

TEST_F(ReloadFaultTest, WeightsThatAreALinkOutside) {
  ExpectNotLoaded([](const std::string& path) {
    fs::rename(path, path + ".elsewhere");
    fs::rename(path + ".elsewhere", testing::TempDir() + "/elsewhere");
    fs::create_symlink(testing::TempDir() + "/elsewhere", path);
  });
}

// Writes like `cp new old`. The file first shrinks to nothing and then grows
// again.
void OverwriteInPlace(const std::string& bytes, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (size_t at = 0; at < bytes.size(); at += 4096) {
    file << bytes.substr(at, 4096) << std::flush;
  }
}

TEST_F(ReloadFaultTest, WeightsOverwrittenInPlaceWhileTheyAreRead) {
  Start();
  PublishVersion(repository_, "tiny", 2);
  const std::string path = repository_ + "/tiny/2/model.safetensors";
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) OverwriteInPlace(bytes.str(), path);
  });
  for (int i = 0; i < 100; ++i) {
    const absl::Status status = Load("tiny");
    EXPECT_FALSE(absl::IsUnavailable(status) &&
                 !absl::StrContains(status.message(), "its files were written"))
        << "the server has ended: " << status;
  }
  EXPECT_THAT(Serves(), HasSubstr("models/tiny/versions/"));
  stop = true;
  writer.join();
  EXPECT_EQ(Load("tiny"), absl::OkStatus());
  EXPECT_EQ(Serves(), "models/tiny/versions/2");
}

TEST_F(ReloadFaultTest, SigkillDuringALoadLeavesARepositoryThatServes) {
  Start();
  PublishVersion(repository_, "tiny", 2);
  std::thread loading([this] { (void)Load("tiny"); });
  server_->Signal(SIGKILL);
  EXPECT_EQ(server_->Wait(), 128 + SIGKILL);
  loading.join();
  Start();
  EXPECT_EQ(Serves(), "models/tiny/versions/2");
}

}  // namespace
}  // namespace sfmamba
