#include "server/api/kserve/infer.h"

#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/server/call/fake_call.h"
#include "tests/server/picture.h"
#include "tests/server/prediction/prediction_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::kserve {
namespace {

using InferTest = prediction::PredictionTest;

TEST_F(InferTest, WhatPicturesCameInIsFreedBeforeTheModelHasRun) {
  std::string bytes =
      BytesRequest({server::EncodePng(server::Gradient(80, 70))})
          .SerializeAsString();
  absl::Notification freed;
  const prediction::TransportEnvironment environment{*environment_};
  call::FakeEnding ending;
  gate_.Close();
  {
    const grpc::Slice slice(
        bytes.data(), bytes.size(),
        [](void* freed) { static_cast<absl::Notification*>(freed)->Notify(); },
        &freed);
    Infer(
        environment, observability::Method::kModelInfer,
        std::make_unique<call::FakeCall>(grpc::ByteBuffer(&slice, 1), &ending));
  }
  EXPECT_FALSE(ending.ended.HasBeenNotified());
  WaitFor(freed, "the message's memory");
  gate_.Open();
  EXPECT_TRUE(ending.Wait().ok()) << ending.status;
}

}  // namespace
}  // namespace sfmamba::kserve
