#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/rest/access.h"

namespace sfmamba::rest {
namespace {

using Headers = std::map<std::string, std::string>;

Headers Ask(const std::vector<std::string>& allowed, const std::string& method,
            const std::string& origin) {
  http::HttpRequest request;
  request.method = method;
  if (!origin.empty()) request.headers.emplace("origin", origin);
  const auto headers = CorsHeaders(allowed, request);
  return Headers(headers.begin(), headers.end());
}

TEST(CorsHeadersTest, ThereAreNoneByDefault) {
  EXPECT_TRUE(Ask({}, "GET", "https://a.org").empty());
  EXPECT_TRUE(Ask({}, "OPTIONS", "https://a.org").empty());
}

TEST(CorsHeadersTest, OriginsAreComparedWhole) {
  const std::vector<std::string> allowed = {"https://a.org", "http://b:8080"};
  for (const char* origin : {"https://a.org", "http://b:8080"}) {
    Headers headers = Ask(allowed, "POST", origin);
    EXPECT_EQ(headers["Access-Control-Allow-Origin"], origin);
    EXPECT_EQ(headers["Vary"], "Origin");
  }
  const Headers kOthers = {{"Vary", "Origin"}};
  for (const char* origin :
       {"", "null", "https://a.org.evil.org", "https://evil.org/https://a.org",
        "http://a.org", "https://a.org:443", "https://a.orgg", "*"}) {
    EXPECT_EQ(Ask(allowed, "POST", origin), kOthers) << origin;
    EXPECT_EQ(Ask(allowed, "OPTIONS", origin), kOthers) << origin;
  }
}

TEST(CorsHeadersTest, BeforeItAsksAPageLearnsWhatItMaySend) {
  Headers headers = Ask({"https://a.org"}, "OPTIONS", "https://a.org");
  EXPECT_TRUE(
      absl::StrContains(headers["Access-Control-Allow-Methods"], "PUT"));
  EXPECT_TRUE(absl::StrContains(headers["Access-Control-Allow-Headers"],
                                "Authorization"));
  EXPECT_EQ(headers["Access-Control-Max-Age"], "600");
  EXPECT_EQ(Ask({"https://a.org"}, "POST", "https://a.org")
                .count("Access-Control-Allow-Methods"),
            0);
}

TEST(CorsHeadersTest, EveryOriginMayBeAllowedButNeverItsCookies) {
  for (const std::string allowed : {"*", "https://a.org"}) {
    Headers headers = Ask({allowed}, "OPTIONS", "https://a.org");
    EXPECT_EQ(headers["Access-Control-Allow-Origin"], allowed);
    EXPECT_EQ(headers.count("Access-Control-Allow-Credentials"), 0);
  }
}

}  // namespace
}  // namespace sfmamba::rest
