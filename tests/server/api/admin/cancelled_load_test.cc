// Tests LoadModel calls whose client disconnects before the model is loaded.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "server/admin/model_changes.h"
#include "server/admin/runtime_settings.h"
#include "server/api/admin/admin_methods.h"
#include "server/call/method_table.h"
#include "sfmamba/v1/admin.pb.h"
#include "tests/server/call/fake_call.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::api {
namespace {

class CancelledLoadTest : public prediction::PredictionTest {
 protected:
  // Starts to load version 4 of "fake". The first batch waits until the gate
  // opens.
  void StartLoad() {
    server::WriteModel(folder_, "fake", "4");
    gate_.Close();
    v1::LoadModelRequest request;
    request.set_name("models/fake/versions/4");
    const grpc::Slice slice(request.SerializeAsString());
    methods_.Serve(methods_.methods()[0],
                   std::make_unique<call::FakeCall>(grpc::ByteBuffer(&slice, 1),
                                                    &ending_));
    gate_.WaitForBatch();
  }
  bool IsLoaded() {
    const auto version = repository_->Find("models/fake/versions/4", "model");
    return version.ok() && (*version)->Loaded().ok();
  }

  admin::ModelChanges changes_{repository_.get(), &log_};
  admin::RuntimeSettings settings_{v1::RuntimeSettings(), repository_.get(),
                                   &log_};
  const call::MethodTable methods_{
      prediction::TransportEnvironment{*environment_},
      AdminMethods(v1::ServerInfo(), &changes_, &settings_)};
  call::FakeEnding ending_;
};

TEST_F(CancelledLoadTest, ALoadIsAnsweredWhenItEnds) {
  StartLoad();
  EXPECT_FALSE(ending_.ended.HasBeenNotified());
  gate_.Open();
  EXPECT_TRUE(ending_.Wait().ok()) << ending_.status;
  EXPECT_TRUE(IsLoaded());
}

TEST_F(CancelledLoadTest, ACancelledLoadIsAnsweredAtOnceAndEnds) {
  StartLoad();
  ending_.cancel();
  EXPECT_TRUE(absl::IsCancelled(ending_.Wait())) << ending_.status;
  EXPECT_EQ(Requests("LoadModel", ""), 0);
  gate_.Open();
  WaitUntil([this] { return Requests("LoadModel", "") == 1; },
            "the load to be counted");
  EXPECT_FALSE(IsLoaded());
}

}  // namespace
}  // namespace sfmamba::api
