#include "server/tracing/endpoint.h"

#include <string>

#include "gtest/gtest.h"

namespace sfmamba::tracing {
namespace {

TEST(CheckEndpointTest, AcceptsHostsWithAndWithoutPorts) {
  for (const char* good :
       {"http://collector:4317", "https://collector.example/",
        "http://10.0.0.1:4317", "http://[::1]:4317", "https://[::1]",
        "http://collector:65535/"}) {
    EXPECT_EQ(CheckEndpoint(good), absl::OkStatus());
  }
}

TEST(CheckEndpointTest, RefusesWhatIsNoHttpUrlOfAHost) {
  for (const char* bad :
       {"", "collector:4317", "localhost", "ftp://collector", "file:///etc/x",
        "http://", "http://:4317", "http://collector:99999",
        "http://collector:", "http://collector:0", "http://collector:4317x",
        "http://a b", "http://c?x=1", "http://::1:4317", "http://[::1",
        "http://[]:4317", "://x"}) {
    const absl::Status status = CheckEndpoint(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_NE(status.message().find("trace_endpoint: got"), std::string::npos)
        << status;
  }
}

TEST(CheckEndpointTest, NamesGrpcInPlaceOfHttp) {
  for (const char* http : {"http://collector:4318", "http://collector:4318/",
                           "https://collector/v1/traces"}) {
    const absl::Status status = CheckEndpoint(http);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << http;
    EXPECT_NE(status.message().find("gRPC, such as http://HOST:4317"),
              std::string::npos)
        << status;
  }
}

TEST(CheckEndpointTest, RefusesSecretsWithoutShowingThem) {
  for (const char* bad : {"http://user@c", "https://user:secret@c/v1/traces",
                          "ftp://user:secret@c", "user:secret@c:4317"}) {
    const absl::Status status = CheckEndpoint(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_EQ(status.message().find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace sfmamba::tracing
