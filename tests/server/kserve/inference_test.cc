#include "server/kserve/inference.h"

#include <string>

#include "absl/synchronization/notification.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "tests/server/kserve/kserve_fixture.h"
#include "tests/server/picture.h"
#include "tests/server/prediction/prediction_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::kserve {
namespace {

using InferenceTest = prediction::PredictionTest;

TEST_F(InferenceTest, WhatPicturesCameInIsFreedBeforeTheModelHasRun) {
  std::string bytes =
      BytesRequest({server::EncodePng(server::Gradient(80, 70))})
          .SerializeAsString();
  absl::Notification freed, answered;
  grpc::ByteBuffer message;
  {
    const grpc::Slice slice(
        bytes.data(), bytes.size(),
        [](void* freed) { static_cast<absl::Notification*>(freed)->Notify(); },
        &freed);
    message = grpc::ByteBuffer(&slice, 1);
  }
  const prediction::TransportEnvironment environment{*environment_};
  gate_.Close();
  Inference inference(
      environment, observability::Method::kModelInfer, {}, &message,
      [&](const absl::Status& status, inference::packed::ModelInferResponse*) {
        EXPECT_TRUE(status.ok()) << status;
        answered.Notify();
      });
  inference.Run(absl::OkStatus());
  EXPECT_FALSE(answered.HasBeenNotified());
  WaitFor(freed, "the message's memory");
  gate_.Open();
  WaitFor(answered, "the answer");
}

}  // namespace
}  // namespace sfmamba::kserve
