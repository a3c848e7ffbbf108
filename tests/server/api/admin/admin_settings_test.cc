// Tests how AdminService changes the settings of a running server.

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/api/admin/admin_service_fixture.h"

namespace sfmamba::api {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

using AdminSettingsTest = AdminServiceTest;

TEST_F(AdminSettingsTest, ChangesTheLogsLevelsWhileItRuns) {
  Start();
  v1::RuntimeSettings settings;
  ASSERT_EQ(Update("log_level: 'error,server=info'", &settings).code,
            StatusCode::OK);
  EXPECT_EQ(settings.log_level(), "error,server=info");
  const size_t before = server_->Log().size();
  AnsweredBy("fake");
  EXPECT_EQ(server_->Log().size(), before);
  ASSERT_EQ(Update("log_level: ''", &settings).code, StatusCode::OK);
  EXPECT_EQ(settings.log_level(), "info");
  AnsweredBy("fake");
  EXPECT_THAT(server_->Log().substr(before), HasSubstr("\"Classify\""));
}

TEST_F(AdminSettingsTest, ChangesTheShareOfTracesWhileItRuns) {
  Start();
  v1::RuntimeSettings settings;
  ASSERT_EQ(Update("trace_ratio: 0.5", &settings).code, StatusCode::OK);
  EXPECT_EQ(settings.trace_ratio(), 0.5);
  EXPECT_THAT(server_->Log(), HasSubstr("\"action\":\"settings\",\"what\":"
                                        "\"trace_ratio: 0.5\""));
  EXPECT_EQ(settings.log_level(), "info");
}

TEST_F(AdminSettingsTest, ChangesTheLimitsOfAQueueWhileItRuns) {
  StartExplicit();
  v1::RuntimeSettings settings;
  ASSERT_EQ(Update("", &settings).code, StatusCode::OK);
  ASSERT_EQ(settings.queues_size(), 1);
  EXPECT_EQ(settings.queues(0).model(), "models/fake/versions/3");
  EXPECT_EQ(settings.queues(0).max_queue_items(), 1024);
  EXPECT_EQ(settings.queues(0).max_queue_bytes(), 512 << 20);
  v1::ClassifyRequest two = server::GreyRequest(1);
  *two.add_images() = server::GreyImage(2);

  ASSERT_EQ(
      Update("queues { model: 'fake' max_queue_items: 1 }", &settings).code,
      StatusCode::OK);
  EXPECT_EQ(settings.queues(0).max_queue_items(), 1);
  EXPECT_EQ(settings.queues(0).max_queue_bytes(), 512 << 20);
  EXPECT_EQ(Classify(two).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/3");

  ASSERT_EQ(Update("queues { model: 'models/fake/versions/3' "
                   "max_queue_items: 9 max_queue_bytes: 1 }",
                   &settings)
                .code,
            StatusCode::OK);
  v1::ServerInfo info;
  ASSERT_EQ(Info(&info).code, StatusCode::OK);
  EXPECT_EQ(info.settings().queues(0).max_queue_items(), 9);
  EXPECT_EQ(info.settings().queues(0).max_queue_bytes(), 1);
  EXPECT_NE(Classify(two).code, StatusCode::OK);

  // LoadModel discards the limits that were changed above. The limits of the
  // model's configuration apply again, except for fields in the request.
  v1::LoadModelRequest load;
  load.set_name("fake");
  load.mutable_batching()->set_max_batch_size(2);
  v1::LoadModelResponse loaded;
  ASSERT_EQ(Ask(&v1::AdminService::Stub::LoadModel, load, &loaded).code,
            StatusCode::OK);
  EXPECT_EQ(Classify(two).code, StatusCode::OK);
}

TEST_F(AdminSettingsTest, LimitsAreOfTheVersionThatIsNamedOrOfAll) {
  StartExplicit();
  server::WriteModel(repository_, "fake", "4");
  ASSERT_EQ(Label("fake", "stable", 3).code, StatusCode::OK);
  ASSERT_EQ(Load("models/fake/versions/4").code, StatusCode::OK);
  v1::RuntimeSettings settings;
  ASSERT_EQ(
      Update("queues { model: 'models/fake/versions/4' max_queue_items: 9 }",
             &settings)
          .code,
      StatusCode::OK);
  ASSERT_EQ(settings.queues_size(), 2);
  EXPECT_EQ(settings.queues(0).max_queue_items(), 1024);
  EXPECT_EQ(settings.queues(1).max_queue_items(), 9);
  ASSERT_EQ(
      Update("queues { model: 'fake' max_queue_items: 5 }", &settings).code,
      StatusCode::OK);
  EXPECT_EQ(settings.queues(0).max_queue_items(), 5);
  EXPECT_EQ(settings.queues(1).max_queue_items(), 5);
}

TEST_F(AdminSettingsTest, WrongLimitsOfQueuesChangeNothing) {
  Start();
  v1::RuntimeSettings settings;
  const auto ask = [&](const std::string& queue) {
    return Update(absl::StrCat("log_level: 'error' "
                               "queues { model: 'fake' max_queue_items: 7 } "
                               "queues { ",
                               queue, " }"),
                  &settings);
  };
  EXPECT_EQ(ask("model: 'fake' max_queue_items: -1").field, "queues");
  EXPECT_EQ(ask("model: 'fake' max_queue_bytes: -1").field, "queues");
  EXPECT_EQ(ask("model: 'models/fake/labels/stable'").field, "queues.model");
  EXPECT_EQ(ask("max_queue_items: 1").field, "queues.model");
  EXPECT_EQ(ask("model: 'none'").code, StatusCode::NOT_FOUND);
  EXPECT_EQ(ask("model: 'models/fake/versions/4'").code, StatusCode::NOT_FOUND);
  ASSERT_EQ(Update("", &settings).code, StatusCode::OK);
  EXPECT_EQ(settings.log_level(), "info");
  EXPECT_EQ(settings.queues(0).max_queue_items(), 1024);
}

TEST_F(AdminSettingsTest, LimitsNeedAModelThatIsLoaded) {
  Start("", {}, /*load=*/false);
  v1::RuntimeSettings settings;
  EXPECT_EQ(Update("log_level: 'error' "
                   "queues { model: 'fake' max_queue_items: 7 }",
                   &settings)
                .reason,
            "MODEL_NOT_READY");
  ASSERT_EQ(Update("", &settings).code, StatusCode::OK);
  EXPECT_EQ(settings.log_level(), "info");
}

TEST_F(AdminSettingsTest, WrongSettingsChangeNothing) {
  Start();
  v1::RuntimeSettings settings;
  server::Ending ending = Update("log_level: 'loud'", &settings);
  EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ending.field, "log_level");
  for (const char* ratio : {"-0.5", "1.5", "nan"}) {
    ending = Update(absl::StrCat("log_level: 'error' trace_ratio: ", ratio),
                    &settings);
    EXPECT_EQ(ending.field, "trace_ratio") << ratio;
  }
  ASSERT_EQ(Update("", &settings).code, StatusCode::OK);
  EXPECT_EQ(settings.log_level(), "info");
}

}  // namespace
}  // namespace sfmamba::api
