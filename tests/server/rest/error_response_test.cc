#include "server/rest/error_response.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
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
       {"{\"code\":3,\"message\":\"got \\\"-1\\\"\",\"details\":[{",
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
  EXPECT_EQ(*RetryAfter(absl::UnavailableError("gone")), "1");
  EXPECT_FALSE(RetryAfter(absl::InternalError("broken")));
}

TEST(ErrorResponseTest, RefusalsOfTheTransportAreWordedAlike) {
  const http::HttpResponse response = RefusalResponse(413, "too long");
  EXPECT_EQ(response.status, 413);
  EXPECT_TRUE(absl::StartsWith(response.body[0],
                               "{\"code\":3,\"message\":\"too long\""))
      << response.body[0];
}

TEST(ErrorResponseTest, ARefusedMethodIsToldTheOthers) {
  const http::HttpResponse response =
      OtherMethod(std::string(1000, '\xff'), "GET, OPTIONS");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(HeaderOf(response, "Allow"), "GET, OPTIONS");
  EXPECT_LT(response.body[0].size(), 400);
  const http::HttpResponse options = OtherMethod("OPTIONS", "GET, OPTIONS");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(HeaderOf(options, "Allow"), "GET, OPTIONS");
  EXPECT_TRUE(options.body.empty());
}

}  // namespace
}  // namespace sfmamba::rest
