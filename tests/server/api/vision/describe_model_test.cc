#include "server/api/vision/describe_model.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::api {
namespace {

using server::VisionServiceTest;

TEST_F(VisionServiceTest, GetModelTellsAllOfIt) {
  Start("max_batch_size: 6");
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_name("models/fake");
  v1::Model model;
  ASSERT_TRUE(server_->stub().GetModel(&context, request, &model).ok());
  EXPECT_EQ(model.name(), "models/fake/versions/3");
  EXPECT_EQ(model.task(), v1::Model::CLASSIFICATION);
  EXPECT_EQ(model.state(), v1::Model::READY);
  EXPECT_EQ(model.state_reason(), "");
  EXPECT_FALSE(model.default_for_task());
  EXPECT_EQ(model.precision(), "FP32");
  EXPECT_EQ(model.variant(), "custom");
  EXPECT_EQ(model.config_source(), "config.textproto");
  EXPECT_EQ(model.input().mean_size(), 3);
  EXPECT_EQ(model.input().std_size(), 3);
  EXPECT_EQ(model.input().channel_order(), "RGB");
  EXPECT_EQ(model.input().buckets(0).width(), server::FakeModel::kSide);
  EXPECT_EQ(model.input().resize(), "center_crop");
  EXPECT_GE(model.input().resize_size(), server::FakeModel::kSide);
  EXPECT_EQ(model.class_count(), 10);
  ASSERT_EQ(model.classes_size(), 10);
  EXPECT_EQ(model.classes(9).label(), "label 9");
  EXPECT_EQ(model.classes(9).class_id(), 9);
  EXPECT_EQ(model.max_batch_size(), 6);
  EXPECT_EQ(model.weights_size_bytes(), 15);
  EXPECT_EQ(model.content_sha256().size(), 64u);
  EXPECT_GT(model.load_time().seconds(), 1'000'000'000);
  grpc::ClientContext other;
  request.set_name("other");
  EXPECT_EQ(server::EndingOf(server_->stub().GetModel(&other, request, &model))
                .reason,
            "MODEL_NOT_FOUND");
  const auto counted = [this](const std::string& model) {
    return server_->Sum("sfmamba_requests_total",
                        {R"(method="GetModel")", R"(model=")" + model + '"'});
  };
  EXPECT_EQ(counted("fake"), 1);
  EXPECT_EQ(counted("_unknown"), 1);
  EXPECT_NE(server_->Log().find(R"("client":"ipv4:127.0.0.1")"),
            std::string::npos);
}

TEST_F(VisionServiceTest, GetModelTellsTheTaskAndTheLargestInput) {
  Start("", {}, true, model::VisionTask::kDetection);
  grpc::ClientContext context;
  v1::GetModelRequest request;
  v1::Model model;
  ASSERT_TRUE(server_->stub().GetModel(&context, request, &model).ok());
  EXPECT_EQ(model.task(), v1::Model::DETECTION);
  EXPECT_EQ(model.input().resize(), "keep_ratio");
  EXPECT_EQ(model.input().resize_size(), 0);
  ASSERT_EQ(model.input().buckets_size(), 1);
  EXPECT_EQ(model.input().buckets(0).height(), server::FakeModel::kShortSide);
  EXPECT_EQ(model.input().buckets(0).width(), server::FakeModel::kLongSide);
}

TEST_F(VisionServiceTest, GetModelTellsEachTask) {
  const std::map<v1::Model::Task, model::VisionTask> tasks = {
      {v1::Model::CLASSIFICATION, model::VisionTask::kClassification},
      {v1::Model::DETECTION, model::VisionTask::kDetection},
      {v1::Model::SEGMENTATION, model::VisionTask::kSegmentation}};
  for (const auto& [named, task] : tasks) {
    server::WriteModel(repository_, absl::StrCat("m", named), "1", "", task,
                       "default_for_task: true");
  }
  Start();
  for (const auto& [named, task] : tasks) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name(absl::StrCat("m", named));
    v1::Model model;
    ASSERT_TRUE(server_->stub().GetModel(&context, request, &model).ok());
    EXPECT_EQ(model.task(), named);
    EXPECT_TRUE(model.default_for_task());
  }
}

TEST_F(VisionServiceTest, ListModelsGoesByPages) {
  for (const char* id : {"c", "a", "b"})
    server::WriteModel(repository_, id, "1");
  Start();
  std::vector<std::string> names;
  v1::ListModelsRequest request;
  request.set_page_size(3);
  int pages = 0;
  do {
    grpc::ClientContext context;
    v1::ListModelsResponse response;
    ASSERT_TRUE(server_->stub().ListModels(&context, request, &response).ok());
    for (const v1::Model& model : response.models()) {
      names.push_back(model.name());
      EXPECT_EQ(model.classes_size(), 0);
      EXPECT_EQ(model.class_count(), 10);
    }
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 2);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "models/a/versions/1", "models/b/versions/1",
                       "models/c/versions/1", "models/fake/versions/3"}));
  const auto field = [this](int size, const char* token) {
    grpc::ClientContext context;
    v1::ListModelsRequest request;
    request.set_page_size(size);
    request.set_page_token(token);
    v1::ListModelsResponse response;
    return server::EndingOf(
               server_->stub().ListModels(&context, request, &response))
        .field;
  };
  EXPECT_EQ(field(-1, ""), "page_size");
  EXPECT_EQ(field(5000, ""), "");
  for (const char* token : {"nonsense", "models/a", "models/a/versions/x"}) {
    EXPECT_EQ(field(1, token), "page_token") << token;
  }
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {R"(method="ListModels")", R"(model="")"}),
            pages + 5);
}

TEST_F(VisionServiceTest, ThePageAfterAVersionThatIsGoneBeginsWithTheNext) {
  for (const char* version : {"2", "10"}) {
    server::WriteModel(repository_, "a", version);
  }
  std::ofstream(repository_ + "/a/policy.textproto") << "all: true";
  Start();
  const auto first = [this](const char* token) -> std::string {
    grpc::ClientContext context;
    v1::ListModelsRequest request;
    request.set_page_token(token);
    v1::ListModelsResponse response;
    const grpc::Status status =
        server_->stub().ListModels(&context, request, &response);
    if (!status.ok()) return status.error_message();
    return response.models_size() == 0 ? "none" : response.models(0).name();
  };
  EXPECT_EQ(first("models/a/versions/1"), "models/a/versions/2");
  EXPECT_EQ(first("models/a/versions/2"), "models/a/versions/10");
  EXPECT_EQ(first("models/a/versions/9"), "models/a/versions/10");
  EXPECT_EQ(first("models/b/versions/1"), "models/fake/versions/3");
  EXPECT_EQ(first("models/x/versions/1"), "none");
}

}  // namespace
}  // namespace sfmamba::api
