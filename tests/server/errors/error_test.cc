#include "server/errors/error.h"

#include <string>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/errors/reasons.h"

namespace sfmamba::server {
namespace {

TEST(ErrorTest, DetailSurvivesTheStatus) {
  ErrorDetail detail;
  detail.reason = "QUEUE_FULL";
  detail.field = "images[2].encoded";
  detail.retry_after = absl::Milliseconds(1250);
  detail.quota_subject = "ipv4:10.0.0.7";
  detail.metadata = {{"limit", "1024"}};
  const absl::Status status =
      MakeError(absl::StatusCode::kResourceExhausted, "full", detail);
  const ErrorDetail read = GetErrorDetail(status);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "full");
  EXPECT_EQ(read.reason, "QUEUE_FULL");
  EXPECT_EQ(read.field, "images[2].encoded");
  EXPECT_EQ(read.retry_after, absl::Milliseconds(1250));
  EXPECT_EQ(read.quota_subject, "ipv4:10.0.0.7");
  EXPECT_EQ(read.metadata, detail.metadata);
}

TEST(ErrorTest, EachDetailIsDescribedByTheMessage) {
  ErrorDetail detail;
  detail.reason = "CLIENT_QUOTA";
  detail.field = "images";
  detail.quota_subject = "ipv4:10.0.0.7";
  const google::rpc::Status proto = ToRpcStatus(
      MakeError(absl::StatusCode::kResourceExhausted, "too many", detail));
  std::vector<std::string> descriptions;
  for (const auto& any : proto.details()) {
    google::rpc::BadRequest request;
    google::rpc::QuotaFailure failure;
    if (any.UnpackTo(&request)) {
      descriptions.push_back(request.field_violations(0).description());
    } else if (any.UnpackTo(&failure)) {
      descriptions.push_back(failure.violations(0).description());
    }
  }
  EXPECT_EQ(descriptions, std::vector<std::string>(2, "too many"));
}

TEST(ErrorTest, TextsThatAreNoUtf8AreMended) {
  const absl::Status status =
      WithMetadata("name", "\xc2", InvalidField("a\xff", "got \"\xc2\""));
  EXPECT_EQ(status.message(), "got \"\xef\xbf\xbd\"");
  const ErrorDetail read = GetErrorDetail(status);
  EXPECT_EQ(read.reason, "INVALID_FIELD");
  EXPECT_EQ(read.field, "a\xef\xbf\xbd");
  EXPECT_EQ(GetMetadata("name", status), "\xef\xbf\xbd");
}

TEST(ErrorTest, StatusWithoutDetailHasNone) {
  const ErrorDetail read = GetErrorDetail(absl::InternalError("x"));
  EXPECT_EQ(read.reason, "");
  EXPECT_EQ(read.field, "");
  EXPECT_EQ(read.retry_after, absl::InfiniteDuration());
}

TEST(ErrorTest, MetadataIsFoundByItsKey) {
  ErrorDetail detail;
  detail.metadata = {{"limit", "1024"}, {"queue", "batch"}};
  const absl::Status status =
      MakeError(absl::StatusCode::kResourceExhausted, "full", detail);
  EXPECT_EQ(GetMetadata("queue", status), "batch");
  EXPECT_EQ(GetMetadata("stage", status), "");
  EXPECT_EQ(GetMetadata("stage", absl::OkStatus()), "");
}

TEST(ErrorTest, InFieldPutsThePrefixFirstAndKeepsTheRest) {
  const absl::Status status =
      InField("images[3]", InvalidField(".tensor.shape", "wrong"));
  EXPECT_EQ(GetErrorDetail(status).field, "images[3].tensor.shape");
  EXPECT_EQ(GetErrorDetail(status).reason, "INVALID_FIELD");
  EXPECT_TRUE(InField("images[3]", absl::OkStatus()).ok());
}

TEST(ErrorTest, AtFieldReplacesTheFieldAndKeepsTheRest) {
  const absl::Status status = AtField(".encoded", InvalidField("old", "wrong"));
  EXPECT_EQ(GetErrorDetail(status).field, ".encoded");
  EXPECT_EQ(GetErrorDetail(status).reason, "INVALID_FIELD");
  EXPECT_EQ(status.message(), "wrong");
  EXPECT_TRUE(AtField(".encoded", absl::OkStatus()).ok());
}

TEST(ErrorTest, WithErrorInfoNamesTheCodeOnlyWhereNoReasonIs) {
  EXPECT_EQ(GetErrorDetail(WithErrorInfo(absl::InternalError("x"))).reason,
            "INTERNAL");
  EXPECT_EQ(GetErrorDetail(WithErrorInfo(InvalidField("f", "x"))).reason,
            "INVALID_FIELD");
}

TEST(ErrorTest, WithMetadataAdds) {
  const ErrorDetail detail =
      GetErrorDetail(WithMetadata("trace_id", "abc", InvalidField("f", "x")));
  ASSERT_EQ(detail.metadata.size(), 1u);
  EXPECT_EQ(detail.metadata[0].second, "abc");
  EXPECT_EQ(detail.field, "f");
}

}  // namespace
}  // namespace sfmamba::server
