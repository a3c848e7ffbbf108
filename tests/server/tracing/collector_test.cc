#include "server/tracing/collector.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/server/tracing/collector_stand_in.h"
#include "tests/testing/patience.h"

namespace sfmamba::tracing {
namespace {

class CollectorTest : public testing::Test {
 protected:
  CollectorTest() { options_.url = stand_in_.url(); }

  absl::Status Write(const std::string& request) {
    Collector collector(options_);
    return collector.Write(request, [] { return false; });
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  CollectorStandIn stand_in_;
  Collector::Options options_;
};

TEST_F(CollectorTest, PostsJson) {
  const std::string large = absl::StrCat("\"", std::string(1 << 20, 'x'), "\"");
  Collector collector(options_);
  for (const std::string& request : {std::string("{}"), large}) {
    const absl::Status status = collector.Write(request, [] { return false; });
    EXPECT_TRUE(status.ok()) << status;
  }
  const auto posts = stand_in_.posts();
  ASSERT_EQ(posts.size(), 2);
  EXPECT_EQ(posts[0].path, "/v1/traces");
  EXPECT_EQ(posts[0].get_header_value("Content-Type"), "application/json");
  EXPECT_EQ(posts[0].get_header_value("User-Agent"), "sfmamba");
  EXPECT_EQ(posts[0].body, "{}");
  EXPECT_EQ(posts[1].body, large);
  // One connection for both.
  EXPECT_EQ(posts[0].remote_port, posts[1].remote_port);
}

TEST_F(CollectorTest, ABusyCollectorIsUnavailable) {
  stand_in_.AnswerWith(503);
  EXPECT_EQ(Write("{}"), absl::UnavailableError(
                             "trace_endpoint: the collector answers with 503"));
}

TEST_F(CollectorTest, ARedirectionIsNotFollowed) {
  stand_in_.AnswerWith(307, {{"Location", stand_in_.url() + "/elsewhere"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(Write("{}")));
  EXPECT_EQ(stand_in_.posts().size(), 1);
}

TEST_F(CollectorTest, ReadsNoAnswerLongerThan64KiB) {
  constexpr int kMost = 64 << 10;
  stand_in_.AnswerWith(200, {}, std::string(kMost, 'x'));
  Collector collector(options_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(collector.Write("{}", [] { return false; }), absl::OkStatus());
  }
  stand_in_.AnswerWith(200, {}, std::string(kMost + 1, 'x'));
  EXPECT_TRUE(absl::IsUnavailable(Write("{}")));
}

TEST_F(CollectorTest, SilenceIsUnavailableOnceItsTimeHasPassed) {
  stand_in_.Hang();
  options_.time = absl::Milliseconds(100);
  EXPECT_TRUE(absl::IsUnavailable(Write("{}")));
}

TEST_F(CollectorTest, AClosedPortIsUnavailable) {
  options_.url = "http://127.0.0.1:1/v1/traces";
  const absl::Status status = Write("{}");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("trace_endpoint: "), std::string::npos);
}

// The file is opened before the collector is asked: this one speaks no TLS.
TEST_F(CollectorTest, TheFileOfAuthoritiesMustBeThere) {
  options_.url = absl::StrCat("https://127.0.0.1:", stand_in_.port(), "/");
  options_.ca_file = testing::TempDir() + "/missing.pem";
  const absl::Status status = Write("{}");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("CA cert"), std::string::npos) << status;
}

TEST_F(CollectorTest, GivesUpAsSoonAsItIsToldTo) {
  stand_in_.Hang();
  options_.time = absl::Hours(1);
  Collector collector(options_);
  int asked = 0;
  EXPECT_TRUE(absl::IsCancelled(
      collector.Write("{}", [&asked] { return ++asked > 2; })));
  EXPECT_EQ(asked, 3);
}

TEST(CollectorStatusTest, SomeAnswersAreWorthAnotherAttempt) {
  EXPECT_TRUE(CollectorStatus(200).ok());
  EXPECT_TRUE(CollectorStatus(202).ok());
  for (const int code : {429, 502, 503, 504}) {
    EXPECT_TRUE(absl::IsUnavailable(CollectorStatus(code))) << code;
  }
  for (const int code : {0, 100, 301, 400, 401, 404, 413, 500, 501}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(CollectorStatus(code))) << code;
  }
}

}  // namespace
}  // namespace sfmamba::tracing
