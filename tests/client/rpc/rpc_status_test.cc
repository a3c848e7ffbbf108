#include "client/rpc/rpc_status.h"

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "tests/client/fake_vision_server.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(RpcStatusTest, OkIsOk) {
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(RpcStatusTest, ReadsWhatTheServerSays) {
  const absl::Status status =
      FromGrpcStatus(FakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                               "queue is full", "QUEUE_FULL", "images[2]", 3));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "queue is full");
  const RpcErrorDetails details = GetRpcErrorDetails(status);
  EXPECT_EQ(details.reason, "QUEUE_FULL");
  EXPECT_THAT(details.metadata, ElementsAre(Pair("model", "m")));
  EXPECT_THAT(details.fields, ElementsAre("images[2]"));
  EXPECT_EQ(details.retry_delay, absl::Seconds(3));
  EXPECT_EQ(DescribeRpcError(status),
            "RESOURCE_EXHAUSTED (QUEUE_FULL): images[2]: queue is full; "
            "retry after 3s");
}

TEST(RpcStatusTest, ATraceIsNamed) {
  google::rpc::ErrorInfo info;
  info.set_reason("DEVICE_ERROR");
  (*info.mutable_metadata())["trace_id"] = "4bf92f35";
  google::rpc::Status details;
  details.add_details()->PackFrom(info);
  const absl::Status status = FromGrpcStatus(grpc::Status(
      grpc::StatusCode::INTERNAL, "broken", details.SerializeAsString()));
  EXPECT_EQ(TraceIdOf(GetRpcErrorDetails(status)), "4bf92f35");
  EXPECT_EQ(DescribeRpcError(status),
            "INTERNAL (DEVICE_ERROR): broken; trace 4bf92f35");
}

TEST(RpcStatusTest, AFieldIsDescribedOnce) {
  EXPECT_EQ(DescribeRpcError(FromGrpcStatus(
                FakeError(grpc::StatusCode::INVALID_ARGUMENT,
                          "percent: got 101", "INVALID_FIELD", "percent"))),
            "INVALID_ARGUMENT (INVALID_FIELD): percent: got 101");
}

TEST(RpcStatusTest, EveryFieldIsNamed) {
  google::rpc::BadRequest bad_request;
  bad_request.add_field_violations()->set_field("images[0]");
  bad_request.add_field_violations()->set_field("params.top_k");
  google::rpc::Status details;
  details.add_details()->PackFrom(bad_request);
  const absl::Status status = FromGrpcStatus(grpc::Status(
      grpc::StatusCode::INVALID_ARGUMENT, "no", details.SerializeAsString()));
  EXPECT_THAT(GetRpcErrorDetails(status).fields,
              ElementsAre("images[0]", "params.top_k"));
}

TEST(RpcStatusTest, AnErrorOfTheNetworkHasNoDetails) {
  const absl::Status status = FromGrpcStatus(
      grpc::Status(grpc::StatusCode::UNAVAILABLE, "connection refused"));
  const RpcErrorDetails details = GetRpcErrorDetails(status);
  EXPECT_EQ(details.reason, "");
  EXPECT_TRUE(details.metadata.empty());
  EXPECT_TRUE(details.fields.empty());
  EXPECT_EQ(details.retry_delay, absl::nullopt);
  EXPECT_EQ(DescribeRpcError(status), "UNAVAILABLE: connection refused");
}

TEST(RpcStatusTest, UnreadableDetailsAreLeftOut) {
  const absl::Status status = FromGrpcStatus(grpc::Status(
      grpc::StatusCode::INTERNAL, "broken", std::string("\xff\xff\xff", 3)));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(GetRpcErrorDetails(status).reason, "");
}

}  // namespace
}  // namespace sfmamba::client
