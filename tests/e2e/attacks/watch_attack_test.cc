// One caller opens more health watches than allowed. Another caller's watches
// must survive.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/e2e/attacks/rounds.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr int kConnections = 5;
constexpr int kWatchesOfOne = 220;

// A client that watches a server's health, like a client-side load balancer of
// gRPC.
class Balancer {
 public:
  explicit Balancer(const std::string& address)
      : stub_(Health::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
        watch_(stub_->Watch(&context_, HealthCheckRequest())) {}
  ~Balancer() {
    context_.TryCancel();
    watch_->Finish();
  }

  // Waits for the watch's next answer. Returns its status, or UNKNOWN if the
  // watch has ended.
  HealthCheckResponse::ServingStatus Next() {
    TimeLimit limit("the watch's answer");
    HealthCheckResponse response;
    return watch_->Read(&response) ? response.status()
                                   : HealthCheckResponse::UNKNOWN;
  }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<Health::Stub> stub_;
  const std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> watch_;
};

// Opens 1,100 watches from another address. If `window` is 0, the client
// accepts none of their answers.
std::vector<RawConnection> OpenWatches(int port, uint32_t window) {
  std::vector<RawConnection> open;
  for (int i = 0; i < kConnections; ++i) {
    std::string frames = Http2Preface(window);
    for (int k = 0; k < kWatchesOfOne; ++k) {
      absl::StrAppend(&frames, Http2ShortHeaders(2 * k + 1, kWatch, k == 0),
                      Http2Message(2 * k + 1, ""));
    }
    open.emplace_back(port, "127.0.0.2");
    open.back().Send(frames);
  }
  return open;
}

void ExpectOthersServed(uint32_t window) {
  ServerProcess server(
      {"--model_repository=" + WriteTinyModel(), "--drain_delay=0s"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  Balancer early(server.address());
  EXPECT_EQ(early.Next(), HealthCheckResponse::SERVING);
  ExpectFiveRoundsHarmless({}, &server, [&](absl::Time end) {
    const auto watches = OpenWatches(server.port(), window);
    absl::SleepFor(absl::Seconds(1));
    Balancer late(server.address());
    EXPECT_EQ(late.Next(), HealthCheckResponse::SERVING);
    absl::SleepFor(end - base::SteadyNow());
  });
  // The server must have kept this watch open until it stopped.
  EXPECT_EQ(early.Next(), HealthCheckResponse::NOT_SERVING);
}

TEST(WatchAttackTest, WatchesOfOneCaller) { ExpectOthersServed(65535); }

TEST(WatchAttackTest, WatchesThatAreNotRead) { ExpectOthersServed(0); }

}  // namespace
}  // namespace sfmamba
