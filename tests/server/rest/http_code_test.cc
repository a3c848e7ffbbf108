#include "server/rest/http_code.h"

#include <utility>

#include "gtest/gtest.h"

namespace sfmamba::rest {
namespace {

TEST(HttpCodeTest, SaysTheSameAsTheCanonicalCode) {
  const std::pair<absl::StatusCode, int> kExpected[] = {
      {absl::StatusCode::kOk, 200},
      {absl::StatusCode::kCancelled, 499},
      {absl::StatusCode::kUnknown, 500},
      {absl::StatusCode::kInvalidArgument, 400},
      {absl::StatusCode::kDeadlineExceeded, 504},
      {absl::StatusCode::kNotFound, 404},
      {absl::StatusCode::kAlreadyExists, 409},
      {absl::StatusCode::kPermissionDenied, 403},
      {absl::StatusCode::kResourceExhausted, 429},
      {absl::StatusCode::kFailedPrecondition, 400},
      {absl::StatusCode::kAborted, 409},
      {absl::StatusCode::kOutOfRange, 400},
      {absl::StatusCode::kUnimplemented, 501},
      {absl::StatusCode::kInternal, 500},
      {absl::StatusCode::kUnavailable, 503},
      {absl::StatusCode::kDataLoss, 500},
      {absl::StatusCode::kUnauthenticated, 401},
  };
  for (const auto& [code, http] : kExpected) {
    EXPECT_EQ(HttpCode(code), http) << absl::StatusCodeToString(code);
  }
}

TEST(HttpCodeTest, TransportErrorsHaveACanonicalCode) {
  const std::pair<int, absl::StatusCode> kExpected[] = {
      {400, absl::StatusCode::kInvalidArgument},
      {404, absl::StatusCode::kNotFound},
      {405, absl::StatusCode::kUnimplemented},
      {408, absl::StatusCode::kDeadlineExceeded},
      {413, absl::StatusCode::kInvalidArgument},
      {415, absl::StatusCode::kInvalidArgument},
      {429, absl::StatusCode::kResourceExhausted},
      {431, absl::StatusCode::kInvalidArgument},
      {500, absl::StatusCode::kInternal},
      {503, absl::StatusCode::kUnavailable},
      {505, absl::StatusCode::kUnimplemented},
  };
  for (const auto& [http, code] : kExpected) {
    EXPECT_EQ(CanonicalCode(http), code) << http;
  }
}

}  // namespace
}  // namespace sfmamba::rest
