// Tests calls through a trusted proxy, over every transport. The proxy names
// the clients that sent the calls, and each call counts for its client.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

using HealthResponse = grpc::health::v1::HealthCheckResponse;

class ForwardedClientsTest : public VisionServiceTest {
 protected:
  // Starts a server on which each client has one image per day.
  void StartWithQuota(const std::string& trusted) {
    v1::ServerConfig config;
    config.set_http_port(0);
    config.add_trusted_proxies(trusted);
    config.set_client_items_per_second(1.0 / 86'400);
    config.set_client_burst(1);
    Start("", config);
  }
  // Returns the reason of a refusal, or an empty string if the call is
  // answered.
  std::string CallFor(const std::vector<std::string>& forwarded) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kTestPatience));
    for (const std::string& value : forwarded) {
      context.AddMetadata("x-forwarded-for", value);
    }
    v1::ClassifyResponse response;
    return EndingOf(
               server_->stub().Classify(&context, GreyRequest(1), &response))
        .reason;
  }
  int PostFor(const std::string& forwarded) {
    httplib::Client client("127.0.0.1", server_->server().http_port());
    const httplib::Result answer = client.Post(
        "/v1/models/fake:classify", {{"X-Forwarded-For", forwarded}},
        EncodePng(Gradient(8, 8)), "image/png");
    return answer ? answer->status : 0;
  }
};

TEST_F(ForwardedClientsTest, EachClientOfAProxyHasItsQuota) {
  StartWithQuota("127.0.0.1");
  EXPECT_EQ(CallFor({"198.51.100.1"}), "");
  EXPECT_EQ(CallFor({"198.51.100.1:77"}), "CLIENT_QUOTA");
  EXPECT_EQ(CallFor({"8.8.8.8", "198.51.100.1, 127.0.0.1"}), "CLIENT_QUOTA");
  EXPECT_EQ(PostFor("198.51.100.1"), 429) << "the same over HTTP";
  EXPECT_EQ(PostFor("2001:db8::1"), 200);
  EXPECT_EQ(CallFor({"[2001:db8::2]:77"}), "CLIENT_QUOTA") << "of one /64";
  EXPECT_EQ(CallFor({}), "") << "the proxy itself";
  EXPECT_EQ(CallFor({"nobody"}), "CLIENT_QUOTA") << "the proxy again";
  EXPECT_EQ(server_->Sum("sfmamba_malformed_forwarded_for_total", {}), 1);
  EXPECT_TRUE(
      absl::StrContains(server_->Log(), "\"client\":\"ipv4:198.51.100.1\""));
}

TEST_F(ForwardedClientsTest, NobodyElseSaysWhoItIs) {
  StartWithQuota("10.0.0.0/8");
  EXPECT_EQ(CallFor({"198.51.100.1"}), "");
  EXPECT_EQ(CallFor({"198.51.100.2"}), "CLIENT_QUOTA");
  EXPECT_EQ(PostFor("198.51.100.3"), 429);
}

TEST_F(ForwardedClientsTest, TheClientWithMostHealthWatchesLosesItsOldest) {
  v1::ServerConfig config;
  config.add_trusted_proxies("127.0.0.0/8");
  config.set_max_health_watches(2);
  Start("", config);
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthResponse>> reader;
  };
  const auto watch = [this](const std::string& client) {
    auto made = std::make_unique<Watch>();
    made->context.AddMetadata("x-forwarded-for", client);
    made->context.set_deadline(absl::ToChronoTime(absl::Now() + kTestPatience));
    made->reader = server_->health().Watch(&made->context, {});
    HealthResponse response;
    EXPECT_TRUE(made->reader->Read(&response));
    return made;
  };
  const auto first = watch("198.51.100.1");
  const auto second = watch("198.51.100.2");
  const auto third = watch("198.51.100.2");
  // The server ends the second watch with RESOURCE_EXHAUSTED. If the server has
  // not noticed yet that its last message to this watch was sent, it cancels
  // the call instead, because the client may have stopped reading.
  EXPECT_THAT(second->reader->Finish().error_code(),
              testing::AnyOf(grpc::StatusCode::RESOURCE_EXHAUSTED,
                             grpc::StatusCode::CANCELLED));
  first->context.TryCancel();
  EXPECT_EQ(first->reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  third->context.TryCancel();
  third->reader->Finish();
}

}  // namespace
}  // namespace sfmamba::server
