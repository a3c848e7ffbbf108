#include "server/api/vision/predict.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/server/call/fake_call.h"
#include "tests/server/picture.h"
#include "tests/server/prediction/prediction_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::api {
namespace {

class PredictTest : public prediction::PredictionTest {
 protected:
  PredictTest() : transport_{*environment_} {
    v1::ClassifyRequest request;
    request.set_model("fake");
    request.add_images()->set_encoded(
        server::EncodePng(server::Gradient(80, 70)));
    bytes_ = request.SerializeAsString();
  }

  void Start() {
    const grpc::Slice slice(
        bytes_.data(), bytes_.size(),
        [](void* freed) { static_cast<absl::Notification*>(freed)->Notify(); },
        &freed_);
    Predict<v1::ClassifyRequest, v1::ClassifyResponse>(
        transport_, observability::Method::kClassify,
        std::make_unique<call::FakeCall>(grpc::ByteBuffer(&slice, 1),
                                         &ending_));
  }

  const prediction::TransportEnvironment transport_;
  std::string bytes_;
  // Notified when the memory that contained the request is freed.
  absl::Notification freed_;
  call::FakeEnding ending_;
};

TEST_F(PredictTest, ARequestIsAnswered) {
  Start();
  ASSERT_TRUE(ending_.Wait().ok()) << ending_.status;
  v1::ClassifyResponse response;
  ASSERT_TRUE(response.ParseFromString(ending_.response));
  EXPECT_EQ(response.model(), "models/fake/versions/3");
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).categories_size(), 5);
  ending_.sent();
}

TEST_F(PredictTest, WhatPicturesCameInIsFreedBeforeTheModelHasRun) {
  gate_.Close();
  Start();
  EXPECT_FALSE(ending_.ended.HasBeenNotified());
  WaitFor(freed_, "the message's memory");
  gate_.Open();
  EXPECT_TRUE(ending_.Wait().ok()) << ending_.status;
}

TEST_F(PredictTest, ACancelledRequestEnds) {
  MayDecode(0);
  Start();
  ending_.cancel();
  decoding_.Allow(prediction::Steps::kAll);
  EXPECT_TRUE(absl::IsCancelled(ending_.Wait())) << ending_.status;
}

TEST_F(PredictTest, ACallMayBeCancelledOnceItHasEnded) {
  Start();
  EXPECT_TRUE(ending_.Wait().ok()) << ending_.status;
  // The request is destroyed here.
  ending_.sent = nullptr;
  ending_.cancel();
}

}  // namespace
}  // namespace sfmamba::api
