#include "server/rest/error_response.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

std::string HeaderOf(const http::HttpResponse& response,
                     const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(ErrorResponseTest, IsAStatusWithItsDetails) {
  const http::HttpResponse response =
      ErrorResponse(server::InvalidField("params.top_k", "got \"-1\""));
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(HeaderOf(response, "Content-Type"), "application/json");
  EXPECT_EQ(HeaderOf(response, "Retry-After"), "");
  ASSERT_EQ(response.body.size(), 1);
  const std::string& body = response.body[0];
  for (const char* part :
       {"{\"code\":3,\"message\":\"params.top_k: got "
        "\\\"-1\\\"\",\"details\":[{",
        "{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\","
        "\"fieldViolations\":[{\"field\":\"params.top_k\","
        "\"description\":\"got \\\"-1\\\"\"}]}",
        "{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\","
        "\"reason\":\"INVALID_FIELD\",\"domain\":\"sfmamba.serving\"}"}) {
    EXPECT_TRUE(absl::StrContains(body, part)) << body;
  }
}

TEST(ErrorResponseTest, SaysWhenToTryAgain) {
  const http::HttpResponse full = ErrorResponse(
      server::QueueFull("batch", "full", absl::Milliseconds(1100)));
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(HeaderOf(full, "Retry-After"), "2");
  EXPECT_TRUE(absl::StrContains(full.body[0], "\"retryDelay\":\"1.100s\""))
      << full.body[0];
  const http::HttpResponse draining = ErrorResponse(server::Draining("it"));
  EXPECT_EQ(draining.status, 503);
  EXPECT_NE(HeaderOf(draining, "Retry-After"), "");
  EXPECT_EQ(
      HeaderOf(ErrorResponse(absl::UnavailableError("gone")), "Retry-After"),
      "1");
  EXPECT_EQ(HeaderOf(KserveError(absl::InternalError("broken")), "Retry-After"),
            "");
}

TEST(ErrorResponseTest, RefusalsOfTheTransportAreWordedAlike) {
  const http::HttpResponse response = RefusalResponse(413, "too long");
  EXPECT_EQ(response.status, 413);
  EXPECT_TRUE(absl::StartsWith(response.body[0],
                               "{\"code\":3,\"message\":\"too long\""))
      << response.body[0];
}

TEST(ErrorResponseTest, RefusalsUnderV2AreThatProtocols) {
  const http::HttpResponse response = RefusalResponse(413, "long", "/v2/x");
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.body[0], "{\"error\":\"long\"}");
  EXPECT_TRUE(
      absl::StartsWith(OtherMethod("PATCH", "GET", "/v2").body[0],
                       "{\"error\":\"got the method PATCH, expected GET\"}"));
  EXPECT_TRUE(
      absl::StartsWith(RefusalResponse(413, "", "/v2x").body[0], "{\"code\""));
}

TEST(ErrorResponseTest, AFieldIsSaidOnce) {
  const absl::Status twice =
      server::InvalidField("crop", "crop: got 2, expected 1");
  EXPECT_TRUE(absl::StrContains(ErrorResponse(twice).body[0],
                                "\"message\":\"crop: got 2, expected 1\""));
}

TEST(ErrorResponseTest, ARefusedMethodIsToldTheOthers) {
  const http::HttpResponse response =
      OtherMethod(std::string(1000, '\xff'), "GET, OPTIONS");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(HeaderOf(response, "Allow"), "GET, OPTIONS");
  EXPECT_LT(response.body[0].size(), 400);
  const std::string shown(32, 'X');
  EXPECT_TRUE(absl::StrContains(OtherMethod(shown + "Y", "GET").body[0],
                                "got the method " + shown + ", expected GET"));
  const http::HttpResponse options = OtherMethod("OPTIONS", "GET, OPTIONS");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(HeaderOf(options, "Allow"), "GET, OPTIONS");
  EXPECT_TRUE(options.body.empty());
}

std::string TextOf(const http::HttpResponse& response) {
  return nlohmann::json::parse(response.body[0])["error"];
}

TEST(KserveErrorTest, ErrorsNameTheFieldInTheWordsOfRest) {
  const http::HttpResponse plain =
      KserveError(server::InvalidField("inputs[0].shape", "got [0]"));
  EXPECT_EQ(plain.status, 400);
  EXPECT_EQ(TextOf(plain), "inputs[0].shape: got [0]");
  for (const char* field : {"raw_input_contents[0]", "inputs[0].contents"}) {
    // Some errors name the field only in their detail. Other errors, such as
    // errors of AtImage(), also name it in the message. The response must name
    // the field exactly once.
    EXPECT_EQ(TextOf(KserveError(server::InvalidField(field, "got 7"))),
              "inputs[0].data: got 7");
    EXPECT_EQ(TextOf(KserveError(
                  server::InvalidField(field, std::string(field) + ": got 7"))),
              "inputs[0].data: got 7");
  }
  EXPECT_EQ(TextOf(KserveError(server::MalformedMessage("\xff \""))),
            "\xef\xbf\xbd \"");
}

TEST(KserveErrorTest, ErrorsHaveTheirCodeAndWhenToTryAgain) {
  const http::HttpResponse full =
      KserveError(server::QueueFull("batch", "full", absl::Milliseconds(1500)));
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(HeaderOf(full, "Retry-After"), "2");
  EXPECT_EQ(KserveError(server::ModelNotFound("x")).status, 404);
  EXPECT_EQ(KserveError(server::Draining("the server")).status, 503);
  EXPECT_EQ(KserveError(server::Expired("queue")).status, 504);
  EXPECT_EQ(KserveError(server::NotSupported("x")).status, 501);
  EXPECT_EQ(KserveError(server::ModelControlOff()).status, 400);
}

TEST(ErrorCodeTest, SaysTheSameAsTheCanonicalCode) {
  const std::pair<absl::StatusCode, int> kExpected[] = {
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
  for (const auto& [code, status] : kExpected) {
    EXPECT_EQ(ErrorResponse(absl::Status(code, "")).status, status)
        << absl::StatusCodeToString(code);
  }
}

TEST(ErrorCodeTest, TransportErrorsHaveACanonicalCode) {
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
  for (const auto& [status, code] : kExpected) {
    const http::HttpResponse response = RefusalResponse(status, "refused");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(nlohmann::json::parse(response.body[0])["code"],
              static_cast<int>(code))
        << status;
  }
}

}  // namespace
}  // namespace sfmamba::rest
