#include "client/commands/admin/admin_command.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/admin.grpc.pb.h"
#include "tests/client/commands_testing.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Model Version(int number, v1::Model::State state) {
  v1::Model model;
  model.set_name(absl::StrCat("models/m/versions/", number));
  model.set_task(v1::Model::CLASSIFICATION);
  model.set_state(state);
  return model;
}

// Stores the requests. Answers with fixed responses, or with `error` if it is
// set. Calls must not overlap.
class FakeAdmin : public v1::AdminService::Service {
 public:
  grpc::Status LoadModel(grpc::ServerContext* /*context*/,
                         const v1::LoadModelRequest* request,
                         v1::LoadModelResponse* response) override {
    *response->add_versions() = Version(1, v1::Model::UNAVAILABLE);
    response->mutable_versions(0)->set_state_reason("unloaded");
    *response->add_versions() = Version(2, v1::Model::READY);
    return Asked(*request);
  }
  grpc::Status UnloadModel(grpc::ServerContext* /*context*/,
                           const v1::UnloadModelRequest* request,
                           v1::UnloadModelResponse* response) override {
    *response->add_versions() = Version(2, v1::Model::UNAVAILABLE);
    return Asked(*request);
  }
  grpc::Status SetVersionLabel(grpc::ServerContext* /*context*/,
                               const v1::SetVersionLabelRequest* request,
                               v1::SetVersionLabelResponse* response) override {
    *response->add_versions() = Version(2, v1::Model::READY);
    response->mutable_versions(0)->add_version_labels(request->label());
    return Asked(*request);
  }
  grpc::Status GetServerInfo(grpc::ServerContext* /*context*/,
                             const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* response) override {
    response->set_version("1.2");
    response->set_revision("abc");
    response->mutable_start_time()->set_seconds(1'700'000'000);
    response->set_model_control("explicit");
    response->mutable_memory()->set_resident_bytes(300 << 20);
    response->mutable_settings()->set_log_level("info");
    v1::ServedModel* model = response->add_models();
    model->set_id("m");
    v1::ServedVersion* version = model->add_versions();
    *version->mutable_model() = Version(7, v1::Model::READY);
    version->mutable_model()->add_version_labels("stable");
    version->mutable_model()->set_precision("BF16");
    version->set_device("cpu");
    version->mutable_predicted_wait()->set_nanos(4'500'000);
    version->set_waiting_images(31);
    return Asked(*request);
  }
  grpc::Status UpdateRuntimeSettings(
      grpc::ServerContext* /*context*/,
      const v1::UpdateRuntimeSettingsRequest* request,
      v1::RuntimeSettings* response) override {
    response->set_log_level("debug");
    response->set_trace_ratio(0.25);
    v1::QueueLimits* queue = response->add_queues();
    queue->set_model("models/m/versions/7");
    queue->set_max_queue_items(31);
    queue->set_max_queue_bytes(5 << 19);
    return Asked(*request);
  }

  grpc::Status error;
  std::vector<std::string> asked;

 private:
  grpc::Status Asked(const google::protobuf::Message& request) {
    asked.push_back(request.ShortDebugString());
    return error;
  }
};

class AdminCommandTest : public testing::Test {
 protected:
  AdminCommandTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
  }

  Outcome Admin(std::vector<std::string> arguments) {
    arguments.push_back(absl::StrCat("--server=127.0.0.1:", port_));
    return Invoke(RunAdmin, arguments);
  }

  FakeAdmin admin_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(AdminCommandTest, LoadsAndShowsTheVersions) {
  const Outcome outcome = Admin({"load", "m"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(admin_.asked, ElementsAre(HasSubstr("name: \"m\"")));
  EXPECT_THAT(admin_.asked[0], testing::Not(HasSubstr("batching")));
  EXPECT_THAT(outcome.out, HasSubstr("UNAVAILABLE: unloaded"));
  EXPECT_THAT(outcome.out, HasSubstr("models/m/versions/2"));
}

TEST_F(AdminCommandTest, LoadsWithOtherLimits) {
  const Outcome outcome =
      Admin({"load", "m", "--max_batch_size=4", "--queue_delay_ms=0.5",
             "--max_queue_items=9"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(admin_.asked[0],
            "name: \"m\" batching { max_batch_size: 4 max_queue_delay { nanos: "
            "500000 } max_queue_items: 9 }");
}

TEST_F(AdminCommandTest, Unloads) {
  const Outcome outcome = Admin({"unload", "models/m/versions/2", "--json"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(admin_.asked[0], "name: \"models/m/versions/2\"");
  EXPECT_THAT(outcome.out, HasSubstr("\"state\":\"UNAVAILABLE\""));
}

TEST_F(AdminCommandTest, SetsAndTakesAwayLabels) {
  const Outcome outcome = Admin({"label", "m", "stable", "2"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(admin_.asked[0], "model: \"m\" label: \"stable\" version: 2");
  EXPECT_THAT(outcome.out, HasSubstr("models/m/versions/2  stable"));
  EXPECT_EQ(Admin({"label", "m", "stable", "none"}).exit_code, kExitOk);
  EXPECT_EQ(admin_.asked[1], "model: \"m\" label: \"stable\"");
  for (const char* version : {"0", "-1", "two", ""}) {
    EXPECT_EQ(Admin({"label", "m", "stable", version}).exit_code, kExitUsage);
  }
}

TEST_F(AdminCommandTest, TellsOfTheServer) {
  const Outcome outcome = Admin({"info"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("sfmamba 1.2 (abc), since 2023-11-14 22:13:20 UTC\n"));
  EXPECT_THAT(outcome.out, HasSubstr("model control: explicit\n"));
  EXPECT_THAT(outcome.out, HasSubstr("memory: 300.0 MiB resident, "));
  EXPECT_THAT(outcome.out, HasSubstr("models/m/versions/7  stable"));
  EXPECT_THAT(outcome.out,
              HasSubstr("cpu     BF16              4.50 ms       31"));
  EXPECT_THAT(Admin({"info", "--json"}).out,
              HasSubstr("\"predicted_wait\":\"0.004500s\""));
}

TEST_F(AdminCommandTest, ChangesSettings) {
  const Outcome outcome =
      Admin({"settings", "--log_level=debug", "--trace_ratio=0"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_EQ(admin_.asked[0], "log_level: \"debug\" trace_ratio: 0");
  EXPECT_EQ(outcome.out,
            "log_level: debug\ntrace_ratio: 0.25\n"
            "queue of models/m/versions/7: at most 31 images, 2.5 MiB\n");
  EXPECT_EQ(Admin({"settings"}).exit_code, kExitOk);
  EXPECT_EQ(admin_.asked[1], "");
}

TEST_F(AdminCommandTest, ChangesTheLimitsOfAQueue) {
  EXPECT_EQ(Admin({"settings", "--model=m", "--max_queue_items=31"}).exit_code,
            kExitOk);
  EXPECT_EQ(Admin({"settings", "--model=m", "--max_queue_bytes=5000000000"})
                .exit_code,
            kExitOk);
  EXPECT_THAT(
      admin_.asked,
      ElementsAre("queues { model: \"m\" max_queue_items: 31 }",
                  "queues { model: \"m\" max_queue_bytes: 5000000000 }"));
  EXPECT_EQ(Admin({"settings", "--model=m"}).exit_code, kExitUsage);
  EXPECT_EQ(Admin({"settings", "--max_queue_items=31"}).exit_code, kExitUsage);
  EXPECT_EQ(admin_.asked.size(), 2u);
}

TEST_F(AdminCommandTest, NothingIsTriedAgain) {
  admin_.error = grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"load", "m"},
        {"unload", "m"},
        {"label", "m", "stable", "1"},
        {"info"},
        {"settings"}}) {
    admin_.asked.clear();
    const Outcome outcome = Admin(arguments);
    EXPECT_EQ(outcome.exit_code, kExitRpcError);
    EXPECT_THAT(outcome.err, HasSubstr("draining"));
    EXPECT_EQ(admin_.asked.size(), 1u) << arguments[0];
  }
}

TEST_F(AdminCommandTest, WrongUsageAsksNothing) {
  EXPECT_EQ(Invoke(RunAdmin, {}).exit_code, kExitUsage);
  EXPECT_EQ(Admin({"lode", "m"}).exit_code, kExitUsage);
  EXPECT_EQ(Admin({"load"}).exit_code, kExitUsage);
  EXPECT_EQ(Admin({"load", "a", "b"}).exit_code, kExitUsage);
  EXPECT_EQ(Admin({"unload", "m", "--max_batch_size=3"}).exit_code, kExitUsage);
  EXPECT_TRUE(admin_.asked.empty());
}

TEST_F(AdminCommandTest, Helps) {
  const Outcome all = Invoke(RunAdmin, {"--help"});
  EXPECT_EQ(all.exit_code, kExitOk);
  EXPECT_THAT(all.out, HasSubstr("\n  label ID LABEL VERSION [flags]  Moves"));
  EXPECT_THAT(all.out, HasSubstr("\n  info [flags]                    Tells"));
  const Outcome load = Invoke(RunAdmin, {"load", "--help"});
  EXPECT_EQ(load.exit_code, kExitOk);
  EXPECT_THAT(load.out, HasSubstr("--max_batch_size"));
}

}  // namespace
}  // namespace sfmamba::client
