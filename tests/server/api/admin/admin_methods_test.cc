#include "server/api/admin/admin_methods.h"

#include <atomic>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/server/api/admin/admin_service_fixture.h"

namespace sfmamba::api {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(AdminServiceTest, TellsWhatWasMeasuredAtLoadAndWhatRan) {
  Start("max_batch_size: 4 max_queue_delay {}");
  v1::ClassifyResponse response;
  for (const int grey : {1, 2}) {
    ASSERT_EQ(Classify(server::GreyRequest(grey), &response).code,
              StatusCode::OK);
  }
  v1::BatchProfile profile;
  ASSERT_EQ(GetBatchProfile("fake", &profile).code, StatusCode::OK);
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {"method=\"GetBatchProfile\"", "model=\"fake\""}),
            1);
  EXPECT_EQ(profile.model(), "models/fake/versions/3");
  EXPECT_EQ(profile.device(), "fake");
  EXPECT_EQ(profile.max_batch_size(), 4);
  ASSERT_EQ(profile.size_classes_size(), 1);
  const v1::BatchProfile::SizeClass& size = profile.size_classes(0);
  EXPECT_EQ(size.height(), server::FakeModel::kSide);
  EXPECT_EQ(size.width(), server::FakeModel::kSide);
  EXPECT_EQ(size.image_type(), v1::BatchProfile::UINT8);
  // Batches of 1, 2 and 4 images were measured.
  ASSERT_EQ(size.times_size(), 3);
  EXPECT_EQ(size.times(0).images(), 1);
  EXPECT_EQ(size.times(2).images(), 4);
  absl::Duration last;
  for (const v1::BatchProfile::BatchTime& time : size.times()) {
    EXPECT_GT(base::FromProto(time.median()), absl::ZeroDuration());
    EXPECT_GE(base::FromProto(time.median()), last);
    EXPECT_GE(base::FromProto(time.p95()), base::FromProto(time.median()));
    last = base::FromProto(time.median());
  }
  ASSERT_GE(size.efficient_sizes_size(), 1);
  EXPECT_EQ(size.efficient_sizes(0), 1);
  EXPECT_GT(size.pace(), 0);
  EXPECT_GT(size.arrivals_per_second(), 0);
}

TEST_F(AdminServiceTest, ADenseModelHasNoTimesBeforeItsFirstImage) {
  server::WriteModel(repository_, "boxes", "1", "",
                     model::VisionTask::kDetection);
  Start("max_batch_size: 4");
  v1::BatchProfile profile;
  ASSERT_EQ(GetBatchProfile("boxes", &profile).code, StatusCode::OK);
  EXPECT_EQ(profile.model(), "models/boxes/versions/1");
  EXPECT_EQ(profile.size_classes_size(), 0);
}

TEST_F(AdminServiceTest, AModelThatIsNotThereIsNotFound) {
  Start();
  v1::BatchProfile profile;
  const server::Ending ending = GetBatchProfile("none", &profile);
  EXPECT_EQ(ending.code, StatusCode::NOT_FOUND);
  EXPECT_EQ(ending.reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(ending.metadata.count("trace_id"), 1u);
}

TEST_F(AdminServiceTest, ANewVersionIsLoadedAndAnOldOneUnloaded) {
  StartExplicit();
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/3");
  server::WriteModel(repository_, "fake", "4");
  v1::LoadModelResponse loaded;
  ASSERT_EQ(Load("fake", &loaded).code, StatusCode::OK);
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/4");
  ASSERT_GE(loaded.versions_size(), 1);
  const v1::Model& last = *loaded.versions().rbegin();
  EXPECT_EQ(last.name(), "models/fake/versions/4");
  EXPECT_EQ(last.state(), v1::Model::READY);
  EXPECT_EQ(last.classes_size(), 0);
  ASSERT_EQ(Load("models/fake/versions/3").code, StatusCode::OK);
  ASSERT_EQ(Unload("models/fake/versions/4").code, StatusCode::OK);
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/3");
  EXPECT_THAT(server_->Log(), HasSubstr("\"msg\":\"administration\""));
  EXPECT_THAT(server_->Log(),
              HasSubstr("\"action\":\"unload\",\"what\":\"models/fake/"
                        "versions/4\",\"caller\":\"ipv4:127.0.0.1:"));
  EXPECT_EQ(server_->WaitForSum(
                "sfmamba_requests_total",
                {"method=\"LoadModel\"", "model=\"\"", "code=\"OK\""}, 2),
            2);
}

TEST_F(AdminServiceTest, AVersionThatDoesNotLoadSaysWhy) {
  StartExplicit();
  server::WriteModel(repository_, "fake", "4");
  std::ofstream(repository_ + "/fake/4/model.safetensors") << "other weights";
  EXPECT_NE(Load("models/fake/versions/4").code, StatusCode::OK);
  v1::ServerInfo info;
  ASSERT_EQ(Info(&info).code, StatusCode::OK);
  ASSERT_EQ(info.models(0).versions_size(), 2);
  const v1::Model& failed = info.models(0).versions(1).model();
  EXPECT_EQ(failed.name(), "models/fake/versions/4");
  EXPECT_EQ(failed.state(), v1::Model::UNAVAILABLE);
  EXPECT_THAT(failed.state_reason(), HasSubstr("model.safetensors"));
}

TEST_F(AdminServiceTest, AnUnloadedModelIsNotServed) {
  StartExplicit();
  ASSERT_EQ(Unload("fake").code, StatusCode::OK);
  const std::string reason = AnsweredBy("fake");
  EXPECT_TRUE(reason == "MODEL_NOT_FOUND" || reason == "MODEL_NOT_READY")
      << reason;
  ASSERT_EQ(Load("fake").code, StatusCode::OK);
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/3");
}

TEST_F(AdminServiceTest, LoadsWithOtherLimits) {
  StartExplicit();
  v1::LoadModelRequest request;
  request.set_name("fake");
  request.mutable_batching()->set_max_batch_size(2);
  v1::LoadModelResponse response;
  ASSERT_EQ(Ask(&v1::AdminService::Stub::LoadModel, request, &response).code,
            StatusCode::OK);
  ASSERT_EQ(response.versions_size(), 1);
  EXPECT_EQ(response.versions(0).max_batch_size(), 2);
  request.mutable_batching()->set_max_batch_size(-2);
  EXPECT_EQ(Ask(&v1::AdminService::Stub::LoadModel, request, &response).field,
            "batching");
  request.mutable_batching()->set_max_batch_size(5000);
  EXPECT_EQ(Ask(&v1::AdminService::Stub::LoadModel, request, &response).field,
            "batching");
}

TEST_F(AdminServiceTest, LabelsMove) {
  StartExplicit();
  // Version 3 has a label, so it stays loaded although the policy keeps only
  // the latest version.
  ASSERT_EQ(Label("fake", "stable", 3).code, StatusCode::OK);
  server::WriteModel(repository_, "fake", "4");
  ASSERT_EQ(Load("models/fake/versions/4").code, StatusCode::OK);
  ASSERT_EQ(labelled_.versions_size(), 1);
  EXPECT_THAT(labelled_.versions(0).version_labels(), ElementsAre("stable"));
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/3");
  ASSERT_EQ(Label("models/fake", "canary", 4).code, StatusCode::OK);
  EXPECT_EQ(AnsweredBy("models/fake/labels/canary"), "models/fake/versions/4");
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/3");
  ASSERT_EQ(Label("fake", "canary", 0).code, StatusCode::OK);
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/3");
  EXPECT_EQ(AnsweredBy("models/fake/labels/canary"), "MODEL_NOT_FOUND");
}

TEST_F(AdminServiceTest, ACanaryHasNoShare) {
  Start();
  v1::SetCanaryShareResponse response;
  const server::Ending ending = Ask(&v1::AdminService::Stub::SetCanaryShare,
                                    v1::SetCanaryShareRequest(), &response);
  EXPECT_EQ(ending.code, StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(ending.reason, "NOT_SUPPORTED");
  EXPECT_THAT(ending.message, HasSubstr("a weighted route"));
}

TEST_F(AdminServiceTest, TellsOfTheServer) {
  StartExplicit();
  ASSERT_EQ(Label("fake", "stable", 3).code, StatusCode::OK);
  server::WriteModel(repository_, "fake", "4");
  ASSERT_EQ(Load("models/fake/versions/4").code, StatusCode::OK);
  ASSERT_EQ(Label("fake", "canary", 4).code, StatusCode::OK);
  v1::ServerInfo info;
  ASSERT_EQ(Info(&info).code, StatusCode::OK);
  EXPECT_EQ(info.model_control(), "explicit");
  EXPECT_EQ(info.version(), "test");
  EXPECT_EQ(info.revision(), "0123abc");
  EXPECT_GT(info.start_time().seconds(), 0);
  EXPECT_GT(info.memory().resident_bytes(), 1 << 20);
  EXPECT_GT(info.memory().limit_bytes(), info.memory().resident_bytes());
  EXPECT_GT(info.memory().requests_limit_bytes(), 0);
  EXPECT_EQ(info.settings().log_level(), "info");
  ASSERT_EQ(info.models_size(), 1);
  EXPECT_EQ(info.models(0).id(), "fake");
  ASSERT_EQ(info.models(0).versions_size(), 2);
  const v1::ServedVersion& version = info.models(0).versions(1);
  EXPECT_EQ(version.model().name(), "models/fake/versions/4");
  EXPECT_THAT(version.model().version_labels(), ElementsAre("canary"));
  EXPECT_EQ(version.device(), "fake");
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {"method=\"GetServerInfo\"", "model=\"\""}),
            1);
}

TEST_F(AdminServiceTest, TellsHowManyImagesOfAModelWait) {
  Start("max_batch_size: 1");
  server_->gate().Close();
  server::Call running(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();
  server::Call second(*server_, server::GreyRequest(2));
  server::Call third(*server_, server::GreyRequest(3));
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 2), 2);
  v1::ServerInfo info;
  ASSERT_EQ(Info(&info).code, StatusCode::OK);
  EXPECT_EQ(info.models(0).versions(0).waiting_images(), 2);
  EXPECT_GT(info.memory().requests_bytes(), 0);
  EXPECT_TRUE(info.models(0).versions(0).has_predicted_wait());
  server_->gate().Open();
  for (server::Call* call : {&running, &second, &third}) {
    EXPECT_EQ(call->Wait().code, StatusCode::OK);
  }
  ASSERT_EQ(Info(&info).code, StatusCode::OK);
  EXPECT_EQ(info.models(0).versions(0).waiting_images(), 0);
}

TEST_F(AdminServiceTest, WithoutModelControlNothingIsLoaded) {
  Start();
  for (const server::Ending& ending : {Load("fake"), Unload("fake")}) {
    EXPECT_EQ(ending.code, StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(ending.reason, "MODEL_CONTROL_OFF");
  }
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/3");
}

TEST_F(AdminServiceTest, WrongNamesAreRefused) {
  StartExplicit();
  for (const char* name : {"", "models/", "models/../versions/1", "../fake",
                           "models/fake/labels/stable", "fake/versions/3", "..",
                           ".", "a b", "\x01"}) {
    const server::Ending ending = Load(name);
    EXPECT_TRUE(ending.code == StatusCode::INVALID_ARGUMENT ||
                ending.code == StatusCode::NOT_FOUND)
        << name << ": " << ending.message;
    EXPECT_NE(Unload(name).code, StatusCode::OK) << name;
  }
  for (const char* version :
       {"0", "03", "-1", "x", "", "3/4", "99999999999999999999"}) {
    const server::Ending ending =
        Load(absl::StrCat("models/fake/versions/", version));
    EXPECT_EQ(ending.code, StatusCode::NOT_FOUND) << version;
  }
  EXPECT_EQ(Load(std::string(200000, 'x')).code == StatusCode::OK, false);
  EXPECT_EQ(Load("none").code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Load("models/fake/versions/9").code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Label("models/fake/versions/3", "stable", 3).field, "model");
  EXPECT_EQ(Label("fake", "", 3).field, "label");
  EXPECT_EQ(Label("fake", "a/b", 3).field, "label");
  EXPECT_EQ(Label("fake", "stable", -3).field, "version");
  EXPECT_THAT(server_->Log(), HasSubstr("\"what\":\"fake stable -3\""));
  EXPECT_EQ(Label("fake", "stable", 9).code, StatusCode::NOT_FOUND);
  EXPECT_EQ(AnsweredBy("fake"), "models/fake/versions/3");
}

TEST_F(AdminServiceTest, MoreLoadsAtOnceThanMayWaitAreAllAnswered) {
  StartExplicit();
  const auto stub = v1::AdminService::NewStub(server_->channel());
  struct OneCall {
    grpc::ClientContext context;
    v1::LoadModelRequest request;
    v1::LoadModelResponse response;
  };
  std::vector<OneCall> calls(400);
  absl::BlockingCounter left(calls.size());
  std::atomic<int> ok{0}, refused{0}, others{0};
  for (OneCall& call : calls) {
    call.request.set_name("fake");
    stub->async()->LoadModel(
        &call.context, &call.request, &call.response,
        [&left, &ok, &refused, &others](const grpc::Status& status) {
          if (status.ok()) {
            ++ok;
          } else if (status.error_code() == StatusCode::RESOURCE_EXHAUSTED) {
            ++refused;
          } else {
            ++others;
          }
          left.DecrementCount();
        });
  }
  left.Wait();
  EXPECT_GE(ok, 1);
  EXPECT_EQ(others, 0);
  EXPECT_EQ(ok + refused, 400);
  ExpectAlive();
}

TEST_F(AdminServiceTest, AMessageThatIsNoneIsRefusedAndCounted) {
  Start();
  grpc::GenericStub stub(server_->channel());
  grpc::ClientContext context;
  const grpc::Slice slice("\xff\xff\xff");
  grpc::ByteBuffer request(&slice, 1), response;
  absl::Notification done;
  grpc::Status status;
  stub.UnaryCall(&context, "/sfmamba.v1.AdminService/LoadModel",
                 grpc::StubOptions(), &request, &response,
                 [&](grpc::Status ended) {
                   status = std::move(ended);
                   done.Notify();
                 });
  done.WaitForNotification();
  EXPECT_EQ(server::EndingOf(status, &context).reason, "MALFORMED_MESSAGE");
}

TEST_F(AdminServiceTest, APortOfItsOwnServesNothingElse) {
  v1::ServerConfig config;
  config.set_admin_port(0);
  config.set_model_control("explicit");
  Start("", config);
  v1::ServerInfo info;
  EXPECT_EQ(Info(&info).code, StatusCode::UNIMPLEMENTED);
  const auto channel = grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", server_->server().admin_port()),
      grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  EXPECT_TRUE(v1::AdminService::NewStub(channel)
                  ->GetServerInfo(&context, v1::GetServerInfoRequest(), &info)
                  .ok());
  EXPECT_EQ(info.models_size(), 1);
  grpc::ClientContext other;
  v1::ListModelsResponse models;
  EXPECT_EQ(v1::VisionService::NewStub(channel)
                ->ListModels(&other, v1::ListModelsRequest(), &models)
                .error_code(),
            StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace sfmamba::api
