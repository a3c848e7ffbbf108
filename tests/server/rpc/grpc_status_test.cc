#include "server/rpc/grpc_status.h"

#include "google/rpc/error_details.pb.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/test/server_context_test_spouse.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"

namespace sfmamba::rpc {
namespace {

using server::ErrorDetail;
using server::MakeError;

TEST(GrpcStatusTest, CarriesTheDetails) {
  ErrorDetail detail;
  detail.reason = "QUEUE_FULL";
  detail.field = "images";
  detail.retry_after = absl::Milliseconds(30);
  const grpc::Status status = ToGrpcStatus(
      MakeError(absl::StatusCode::kResourceExhausted, "queue is full", detail));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "queue is full");
  google::rpc::Status proto;
  ASSERT_TRUE(proto.ParseFromString(status.error_details()));
  EXPECT_EQ(proto.code(), 8);
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest request;
  google::rpc::RetryInfo retry;
  int found = 0;
  for (const google::protobuf::Any& any : proto.details()) {
    found +=
        any.UnpackTo(&info) + any.UnpackTo(&request) + any.UnpackTo(&retry);
  }
  EXPECT_EQ(found, 3);
  EXPECT_EQ(info.reason(), "QUEUE_FULL");
  EXPECT_EQ(info.domain(), "sfmamba.serving");
  EXPECT_EQ(request.field_violations(0).field(), "images");
  EXPECT_EQ(retry.retry_delay().nanos(), 30'000'000);
}

TEST(GrpcStatusTest, TheRetryDelayIsSentInWholeMillisecondsRoundedUp) {
  const auto trailers = [](absl::Duration retry_after) {
    ErrorDetail detail;
    detail.retry_after = retry_after;
    grpc::ServerContext context;
    EndCall(MakeError(absl::StatusCode::kUnavailable, "later", detail),
            &context);
    return grpc::testing::ServerContextTestSpouse(&context)
        .GetTrailingMetadata();
  };
  const std::string key = "grpc-retry-pushback-ms";
  EXPECT_EQ(trailers(absl::Milliseconds(30)).find(key)->second, "30");
  EXPECT_EQ(trailers(absl::Microseconds(30'001)).find(key)->second, "31");
  EXPECT_EQ(trailers(absl::ZeroDuration()).find(key)->second, "1");
  EXPECT_TRUE(trailers(absl::InfiniteDuration()).empty());
}

TEST(GrpcStatusTest, AStatusWithoutDetailStillCarriesErrorInfo) {
  google::rpc::Status proto = ToRpcStatus(absl::InternalError("x"));
  google::rpc::ErrorInfo info;
  ASSERT_EQ(proto.details_size(), 1);
  ASSERT_TRUE(proto.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "INTERNAL");
}

}  // namespace
}  // namespace sfmamba::rpc
