#include "server/repository/model_repository.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "server/errors/error.h"
#include "tests/server/running_server.h"
#include "tests/testing/patience.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

class ModelRepositoryTest : public testing::Test {
 protected:
  ModelRepositoryTest()
      : folder_(server::NewFolder("models")),
        log_(stderr, observability::LogLevel::kError,
             observability::LogFormat::kText),
        metrics_(observability::BuildInfo{}) {}

  ModelRepository& Make(std::map<std::string, std::string> models = {}) {
    return Make(std::move(models), &log_);
  }
  ModelRepository& Make(std::map<std::string, std::string> models,
                        observability::Logger* log) {
    ModelRepository::Options options;
    options.directory = folder_;
    options.models = std::move(models);
    options.executor.profile_budget = absl::Milliseconds(1);
    repository_ = std::make_unique<ModelRepository>(
        options,
        [this](const ModelDirectory& directory,
               const ModelRepository::CaptureFailed&)
            -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
          const std::string& weights = directory.weights_paths.front();
          if (weights.find("unloadable") != std::string::npos) {
            return absl::InvalidArgumentError(
                "model.safetensors: no such tensor");
          }
          return std::make_unique<server::FakeModel>(directory.config, &gate_);
        },
        &metrics_, log);
    return *repository_;
  }

  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& version : repository_->List()) {
      names.push_back(version->name());
    }
    return names;
  }

  static absl::Status LoadAll(ModelRepository& repository) {
    return repository.LoadAll([](const ModelVersion&) {}, [] { return false; });
  }

  const std::string folder_;
  server::Gate gate_;
  observability::Logger log_;
  observability::Metrics metrics_;
  std::unique_ptr<ModelRepository> repository_;
};

TEST_F(ModelRepositoryTest, TakesTheHighestPublishedVersion) {
  for (const char* version : {"1", "9", "10"})
    server::WriteModel(folder_, "m", version);
  server::WriteModel(folder_, "m", "11");
  // This version is not published yet.
  fs::remove(folder_ + "/m/11/config.textproto");
  ASSERT_TRUE(Make().Scan().ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{"models/m/versions/10"}));
}

TEST_F(ModelRepositoryTest, IgnoresOtherNames) {
  server::WriteModel(folder_, "m", "1");
  for (const char* version : {"02", "0", "-3", "4x", "latest", "+5", "2 ", " 2",
                              "99999999999999999999"}) {
    server::WriteModel(folder_, "m", version);
  }
  server::WriteModel(folder_, ".hidden", "1");
  server::WriteModel(folder_, "with space", "1");
  std::ofstream(folder_ + "/README.md") << "text";
  ASSERT_TRUE(Make().Scan().ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{"models/m/versions/1"}));
}

TEST_F(ModelRepositoryTest, R2WarnsOnceOfEachFolderThatIsLeftOut) {
  server::WriteModel(folder_, "m", "1");
  server::WriteModel(folder_, "m", "02");
  server::WriteModel(folder_, "my model", "1");
  std::FILE* const out = std::tmpfile();
  {
    observability::Logger log(out, observability::LogLevel::kWarning,
                              observability::LogFormat::kText);
    ModelRepository& repository = Make({}, &log);
    ASSERT_TRUE(repository.Scan().ok());
    ASSERT_TRUE(repository.Scan().ok()) << "as each poll looks again";
    ASSERT_TRUE(log.Flush(kPatience));
    repository_.reset();
  }
  std::rewind(out);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  const std::vector<std::string> parts =
      absl::StrSplit(text, "a folder is not served");
  EXPECT_EQ(parts.size(), 3) << text;
  EXPECT_TRUE(absl::StrContains(text, "m/02")) << text;
  EXPECT_TRUE(absl::StrContains(text, "my model")) << text;
}

TEST_F(ModelRepositoryTest, FollowsNoLinkOutside) {
  const std::string outside = server::NewFolder("outside");
  server::WriteModel(folder_, "m", "1");
  server::WriteModel(outside, "other", "2");
  fs::create_directory_symlink(outside + "/other", folder_ + "/linked");
  fs::create_directory_symlink(outside + "/other/2", folder_ + "/m/2");
  ASSERT_TRUE(Make().Scan().ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{"models/m/versions/1"}));
}

TEST_F(ModelRepositoryTest, FindsAModelByEachFormOfItsName) {
  server::WriteModel(folder_, "m", "3");
  const std::string longest(128, 'x');
  server::WriteModel(folder_, longest, "1");
  server::WriteModel(folder_, longest + "x", "1");  // Too long for a name.
  ModelRepository& repository = Make();
  ASSERT_TRUE(repository.Scan().ok());
  EXPECT_EQ(Names().size(), 2);
  for (const char* name : {"m", "models/m", "models/m/versions/3"}) {
    const auto found = repository.Find(name, "model");
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ((*found)->name(), "models/m/versions/3");
  }
  EXPECT_TRUE(repository.Find(longest, "model").ok());
  for (const char* name :
       {"other", "models/other", "models/m/versions/2", "models/m/versions/03",
        "models/m/versions/", "models/m/labels/stable"}) {
    const absl::Status status = repository.Find(name, "model").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_EQ(server::GetErrorDetail(status).reason, "MODEL_NOT_FOUND");
  }
  for (const std::string& name :
       {std::string("m/3"), std::string("models/m/3"), std::string("models/"),
        std::string(".m"), std::string("models/m/labels/"), longest + "x"}) {
    const absl::Status status = repository.Find(name, "model").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(server::GetErrorDetail(status).field, "model") << name;
  }
}

TEST_F(ModelRepositoryTest, ANameMayBeLeftOutWhereOneModelIsMeant) {
  server::WriteModel(folder_, "a", "1");
  server::WriteModel(folder_, "b", "1", "", model::VisionTask::kDetection);
  ModelRepository& repository = Make();
  ASSERT_TRUE(repository.Scan().ok());
  const auto only = repository.Find("", "model", model::VisionTask::kDetection);
  ASSERT_TRUE(only.ok()) << only.status();
  EXPECT_EQ((*only)->id(), "b");
  for (const auto task : {std::optional<model::VisionTask>(),
                          std::optional(model::VisionTask::kSegmentation)}) {
    EXPECT_EQ(
        server::GetErrorDetail(repository.Find("", "model", task).status())
            .field,
        "model");
  }
}

TEST_F(ModelRepositoryTest, LoadingStopsBetweenModelsWhenAsked) {
  for (const char* id : {"a", "b"}) server::WriteModel(folder_, id, "1");
  ModelRepository& repository = Make();
  ASSERT_TRUE(repository.Scan().ok());
  int loaded = 0;
  const absl::Status status =
      repository.LoadAll([&loaded](const ModelVersion&) { ++loaded; },
                         [&loaded] { return loaded == 1; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(loaded, 1);
  EXPECT_EQ((*repository.Find("b", "model"))->state(),
            observability::ModelState::kLoading);
}

TEST_F(ModelRepositoryTest, AnEmptyFolderIsAnError) {
  EXPECT_EQ(Make().Scan().code(), absl::StatusCode::kNotFound);
  fs::remove_all(folder_);
  EXPECT_EQ(Make().Scan().code(), absl::StatusCode::kNotFound);
}

TEST_F(ModelRepositoryTest, ServesASingleFolderByItsName) {
  server::WriteModel(folder_, "m", "1");
  const std::string outside = server::NewFolder("outside");
  server::WriteModel(outside, "mnt", "7");
  ModelRepository& repository =
      Make({{"single", outside + "/mnt/7"}, {"again", outside + "/mnt/7"}});
  ASSERT_TRUE(repository.Scan().ok());
  ASSERT_TRUE(LoadAll(repository).ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{"models/again/versions/1",
                                               "models/m/versions/1",
                                               "models/single/versions/1"}));
  EXPECT_EQ(Make({{"m", outside + "/mnt/7"}}).Scan().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ModelRepositoryTest, AFailedLoadLeavesItsReasonWithoutPaths) {
  server::WriteModel(folder_, "unloadable", "1");
  server::WriteModel(folder_, "good", "1");
  ModelRepository& repository = Make();
  ASSERT_TRUE(repository.Scan().ok());
  const absl::Status status = LoadAll(repository);
  EXPECT_EQ(status.message(),
            "models/unloadable/versions/1: model.safetensors: no such tensor");
  const auto version = repository.Find("unloadable", "model");
  ASSERT_TRUE(version.ok());
  EXPECT_EQ((*version)->state(), observability::ModelState::kUnavailable);
  EXPECT_EQ((*version)->state_reason(), "model.safetensors: no such tensor");
  EXPECT_EQ(server::GetErrorDetail((*version)->Loaded().status()).reason,
            "MODEL_NOT_READY");
  EXPECT_EQ((*repository.Find("good", "model"))->state(),
            observability::ModelState::kReady);
}

TEST_F(ModelRepositoryTest, RandomDenseModelsLoadFromTheirConfigurationAlone) {
  constexpr char kSmall[] = R"(
    num_classes: 5
    backbone {
      variant: "custom" dim: 16 in_dim: 8 depths: [ 1, 1, 2, 2 ]
      num_heads: [ 1, 2, 4, 8 ] windows: [ 4, 2 ]
    }
    input { short_side: 64 long_side: 96 }
  )";
  for (const auto& [name, text] : std::map<std::string, std::string>{
           {"detector",
            "task: DETECTION detector { channels: 16 fc_width: 32 }"},
           {"segmenter", "task: SEGMENTATION segmenter { channels: 16 }"}}) {
    const std::string version = folder_ + "/" + name + "/1";
    fs::create_directories(version);
    std::ofstream(version + "/config.textproto") << text << kSmall;
  }
  ModelRepository::Options options;
  options.directory = folder_;
  options.random_init = true;
  ModelRepository repository(
      options,
      [](const ModelDirectory& directory,
         const ModelRepository::CaptureFailed&) {
        EXPECT_TRUE(directory.weights_paths.empty());
        return model::VisionModel::Random(directory.config, /*seed=*/0);
      },
      &metrics_, &log_);
  ASSERT_EQ(repository.Scan(), absl::OkStatus());
  EXPECT_EQ(LoadAll(repository), absl::OkStatus());
  for (const auto& version : repository.List()) {
    const auto loaded = version->Loaded();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ((*loaded)->directory.labels.back(), "class_4");
  }
}

}  // namespace
}  // namespace sfmamba::repository
