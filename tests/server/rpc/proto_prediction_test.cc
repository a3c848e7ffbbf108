#include "server/rpc/proto_prediction.h"

#include <string>

#include "absl/synchronization/notification.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "tests/server/picture.h"
#include "tests/server/prediction/prediction_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

using ProtoPredictionTest = prediction::PredictionTest;

TEST_F(ProtoPredictionTest, WhatPicturesCameInIsFreedBeforeTheModelHasRun) {
  v1::ClassifyRequest request;
  request.set_model("fake");
  request.add_images()->set_encoded(
      server::EncodePng(server::Gradient(80, 70)));
  std::string bytes = request.SerializeAsString();
  absl::Notification freed, answered;
  grpc::ByteBuffer message;
  {
    const grpc::Slice slice(
        bytes.data(), bytes.size(),
        [](void* freed) { static_cast<absl::Notification*>(freed)->Notify(); },
        &freed);
    message = grpc::ByteBuffer(&slice, 1);
  }
  gate_.Close();
  Classification classification(
      *environment_, observability::Method::kClassify, {}, &message,
      [&](const absl::Status& status, v1::ClassifyResponse*) {
        EXPECT_TRUE(status.ok()) << status;
        answered.Notify();
      });
  classification.Run(absl::OkStatus());
  EXPECT_FALSE(answered.HasBeenNotified());
  WaitFor(freed, "the message's memory");
  gate_.Open();
  WaitFor(answered, "the answer");
}

}  // namespace
}  // namespace sfmamba::rpc
