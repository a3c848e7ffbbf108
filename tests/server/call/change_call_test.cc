#include "server/call/change_call.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/errors/reasons.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/server/call/fake_call.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::call {
namespace {

class ChangeCallTest : public prediction::PredictionTest {
 protected:
  void Start() {
    const prediction::TransportEnvironment environment{*environment_};
    change_ = ChangeCall::New(
        environment, observability::Method::kLoadModel,
        std::make_unique<FakeCall>(grpc::ByteBuffer(), &ending_));
    v1::GetModelRequest request;
    EXPECT_TRUE(change_->Read(&request).ok());
  }
  void End(const absl::Status& status) {
    v1::Model response;
    response.set_name("models/fake/versions/3");
    change_->End(status, &response);
  }

  FakeEnding ending_;
  std::shared_ptr<ChangeCall> change_;
};

TEST_F(ChangeCallTest, IsAnsweredWhenTheChangeEnds) {
  Start();
  EXPECT_FALSE(ending_.ended.HasBeenNotified());
  End(absl::OkStatus());
  ASSERT_TRUE(ending_.Wait().ok());
  v1::Model response;
  ASSERT_TRUE(response.ParseFromString(ending_.response));
  EXPECT_EQ(response.name(), "models/fake/versions/3");
  EXPECT_EQ(Requests("LoadModel", ""), 1);
}

TEST_F(ChangeCallTest, AnErrorIsTheAnswer) {
  Start();
  End(server::ModelControlOff());
  EXPECT_TRUE(absl::IsFailedPrecondition(ending_.Wait()));
  EXPECT_TRUE(absl::StrContains(Log(), "MODEL_CONTROL_OFF")) << Log();
}

TEST_F(ChangeCallTest, AClientThatGoesIsAnsweredAtOnceAndTheChangeIsCounted) {
  Start();
  EXPECT_FALSE(change_->client_has_gone());
  ending_.cancel();
  EXPECT_TRUE(absl::IsCancelled(ending_.Wait())) << ending_.status;
  EXPECT_TRUE(change_->client_has_gone());
  EXPECT_EQ(Requests("LoadModel", ""), 0);
  End(absl::OkStatus());
  EXPECT_EQ(Requests("LoadModel", ""), 1);
}

TEST_F(ChangeCallTest, AClientMayGoOnceTheChangeHasEnded) {
  Start();
  End(absl::OkStatus());
  change_ = nullptr;
  ending_.cancel();
  EXPECT_TRUE(ending_.Wait().ok());
}

}  // namespace
}  // namespace sfmamba::call
