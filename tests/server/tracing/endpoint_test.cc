#include <string>

#include "gtest/gtest.h"
#include "server/tracing/collector.h"

namespace sfmamba::tracing {
namespace {

TEST(TracesUrlTest, GetsThePathOfOtlpUnlessItHasOne) {
  EXPECT_EQ(*TracesUrl("http://collector:4318"),
            "http://collector:4318/v1/traces");
  EXPECT_EQ(*TracesUrl("https://collector/"), "https://collector/v1/traces");
  EXPECT_EQ(*TracesUrl("http://[::1]:4318"), "http://[::1]:4318/v1/traces");
  EXPECT_EQ(*TracesUrl("https://c/otlp/v1/traces"), "https://c/otlp/v1/traces");
}

TEST(TracesUrlTest, RefusesWhatIsNoHttpUrl) {
  for (const char* bad :
       {"", "collector:4318", "localhost", "ftp://collector", "file:///etc/x",
        "http://", "http://collector:99999", "http://a b/", "://x"}) {
    const absl::StatusOr<std::string> url = TracesUrl(bad);
    ASSERT_FALSE(url.ok()) << bad << " became " << *url;
    EXPECT_NE(url.status().message().find("trace_endpoint: got"),
              std::string::npos)
        << url.status();
  }
}

TEST(TracesUrlTest, RefusesSecretsWithoutShowingThem) {
  for (const char* bad : {"http://user@c", "https://user:secret@c/v1/traces"}) {
    const absl::StatusOr<std::string> url = TracesUrl(bad);
    ASSERT_FALSE(url.ok()) << bad;
    EXPECT_EQ(url.status().message().find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace sfmamba::tracing
