#include "server/call/method_table.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/errors/reasons.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/server/call/fake_call.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::call {
namespace {

using Environment = prediction::TransportEnvironment;

absl::Status AnswerWithName(const Environment&, const v1::GetModelRequest&,
                            v1::Model* model, observability::RequestRecord*) {
  model->set_name("models/fake/versions/3");
  return absl::OkStatus();
}

class MethodTableTest : public prediction::PredictionTest {
 protected:
  MethodTableTest()
      : table_(Environment{*environment_},
               {{"Service/GetModel", "", security::Scope::kRead,
                 observability::Method::kGetModel,
                 AnswerAtOnce<v1::GetModelRequest, v1::Model>(
                     About::kServer, AnswerWithName)}}) {}

  void Serve(const absl::Status& admitted) {
    table_.Serve(
        table_.methods()[0],
        std::make_unique<FakeCall>(grpc::ByteBuffer(), &ending_, admitted));
  }

  const MethodTable table_;
  FakeEnding ending_;
};

TEST_F(MethodTableTest, AnAdmittedCallIsAnsweredAndCounted) {
  Serve(absl::OkStatus());
  ASSERT_TRUE(ending_.Wait().ok());
  v1::Model model;
  ASSERT_TRUE(model.ParseFromString(ending_.response));
  EXPECT_EQ(model.name(), "models/fake/versions/3");
  EXPECT_EQ(Requests("GetModel", ""), 1);
}

TEST_F(MethodTableTest, ARefusedCallIsNotAnsweredButCounted) {
  Serve(server::TokenInvalid("none"));
  EXPECT_TRUE(absl::IsUnauthenticated(ending_.Wait()));
  EXPECT_EQ(ending_.response, "");
  EXPECT_EQ(Requests("GetModel", ""), 1);
  EXPECT_TRUE(absl::StrContains(Log(), "TOKEN_INVALID")) << Log();
}

}  // namespace
}  // namespace sfmamba::call
