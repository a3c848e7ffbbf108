#include "server/rest/call_headers.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"

namespace sfmamba::rest {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

http::HttpRequest RequestWith(const std::string& header,
                              const std::string& value) {
  http::HttpRequest request;
  request.headers.emplace(header, value);
  return request;
}

// Returns the time until the deadline of a request with this header. If the
// header is wrong, returns the field that the error names.
std::string TimeOf(const std::string& header, const std::string& value) {
  const absl::StatusOr<prediction::CallInfo> call =
      CallOf(RequestWith(header, value), kNow);
  if (call.ok()) return absl::FormatDuration(call->deadline - kNow);
  EXPECT_EQ(call.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(call.status().message(), "expected"));
  return server::GetErrorDetail(call.status()).field;
}

TEST(CallHeadersTest, ARequestMaySayNothing) {
  http::HttpRequest request;
  request.peer = "ipv4:127.0.0.1:5000";
  request.caller.name = "camera";
  const absl::StatusOr<prediction::CallInfo> call = CallOf(request, kNow);
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call->peer, "ipv4:127.0.0.1:5000");
  EXPECT_EQ(call->caller.name, "camera");
  EXPECT_EQ(call->traceparent, "");
  EXPECT_EQ(call->deadline, absl::InfiniteFuture());
}

TEST(CallHeadersTest, TheTraceIsHandedOn) {
  EXPECT_EQ(
      CallOf(RequestWith("traceparent", "00-ab-cd-01"), kNow)->traceparent,
      "00-ab-cd-01");
}

TEST(CallHeadersTest, SeveralStatesOfATraceAreOneAndSeveralTracesAreNone) {
  http::HttpRequest request = RequestWith("tracestate", "a=1");
  request.headers.emplace("tracestate", "b=2");
  request.headers.emplace("traceparent", "00-ab-cd-01");
  absl::StatusOr<prediction::CallInfo> call = CallOf(request, kNow);
  EXPECT_EQ(call->tracestate, "a=1,b=2");
  EXPECT_EQ(call->traceparent, "00-ab-cd-01");
  EXPECT_EQ(call->system, "http");
  request.headers.emplace("traceparent", "00-ab-cd-01");
  EXPECT_EQ(CallOf(request, kNow)->traceparent, "");
}

TEST(CallHeadersTest, ReadsTimeoutsOfGrpc) {
  EXPECT_EQ(TimeOf("grpc-timeout", "1H"), "1h");
  EXPECT_EQ(TimeOf("grpc-timeout", "2M"), "2m");
  EXPECT_EQ(TimeOf("grpc-timeout", "5S"), "5s");
  EXPECT_EQ(TimeOf("grpc-timeout", "100m"), "100ms");
  EXPECT_EQ(TimeOf("grpc-timeout", "7u"), "7us");
  EXPECT_EQ(TimeOf("grpc-timeout", "99999999n"), "99.999999ms");
  EXPECT_EQ(TimeOf("grpc-timeout", "99999999H"), "99999999h");
}

TEST(CallHeadersTest, RefusesOtherTimeoutsOfGrpc) {
  for (const char* bad : {"", "5", "S", "-5S", "5s", "5 S", "0S", "1.5S",
                          "999999999S", "+5S", "5S ", "\xff"}) {
    EXPECT_EQ(TimeOf("grpc-timeout", bad), "grpc-timeout") << bad;
  }
}

TEST(CallHeadersTest, ReadsSecondsAndDurations) {
  EXPECT_EQ(TimeOf("x-request-timeout", "2"), "2s");
  EXPECT_EQ(TimeOf("x-request-timeout", "0.25"), "250ms");
  EXPECT_EQ(TimeOf("x-request-timeout", "1.5s"), "1.5s");
  EXPECT_EQ(TimeOf("x-request-timeout", "150ms"), "150ms");
}

TEST(CallHeadersTest, RefusesOtherSeconds) {
  for (const char* bad :
       {"", "0", "-1", "-1s", "nan", "0s", "soon", "1 minute", "1e", "\n"}) {
    EXPECT_EQ(TimeOf("x-request-timeout", bad), "x-request-timeout") << bad;
  }
}

TEST(CallHeadersTest, TwoTimeoutsContradictEachOther) {
  http::HttpRequest request = RequestWith("grpc-timeout", "5S");
  request.headers.emplace("x-request-timeout", "5");
  EXPECT_FALSE(CallOf(request, kNow).ok());
  request = RequestWith("x-request-timeout", "5");
  request.headers.emplace("x-request-timeout", "5");
  EXPECT_FALSE(CallOf(request, kNow).ok());
}

TEST(CallHeadersTest, AnErrorShowsLittleOfALongValue) {
  const auto call =
      CallOf(RequestWith("grpc-timeout", std::string(10'000, '\xfe')), kNow);
  EXPECT_LT(call.status().message().size(), 512);
  const std::string shown(64, 'x');
  EXPECT_TRUE(absl::StrContains(
      CallOf(RequestWith("grpc-timeout", shown + "y"), kNow).status().message(),
      "got \"" + shown + "\", expected up to 8 digits"));
}

}  // namespace
}  // namespace sfmamba::rest
