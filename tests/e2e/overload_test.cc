// Honest clients, most of whose calls miss their deadlines. They are not taken
// for a flood of calls that are reset (CVE-2023-44487): no connection is ended.

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int kStreams = 64;  // A connection's calls at a time.
// Three of four calls have a deadline that no processor of today meets while
// 128 are open, and the fourth one that any meets.
constexpr int kHurried = 3;
constexpr absl::Duration kTooShort = absl::Milliseconds(4);

// Keeps kStreams calls open on a connection of its own, each followed by the
// next.
class HastyClient {
 public:
  struct Ends {
    int served = 0;
    int refused = 0;
    int expired = 0;
    int unavailable = 0;
  };

  explicit HastyClient(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::VisionService::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
    request_.set_model("tiny");
    v1::PixelBuffer& pixels = *request_.add_images()->mutable_pixels();
    pixels.set_width(128);
    pixels.set_height(128);
    pixels.set_format(v1::PixelBuffer::RGB8);
    pixels.set_data(std::string(128 * 128 * 3, 'a'));
    for (int i = 0; i < kStreams; ++i) Send();
  }

  Ends ends() const {
    absl::MutexLock lock(&mu_);
    return ends_;
  }
  // Sends no more and waits for the last ends.
  Ends Stop() {
    TimeLimit limit("the hasty client's answers", kTestPatience);
    const auto none_open = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return open_ == 0;
    };
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    mu_.Await(absl::Condition(&none_open));
    return ends_;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
  };

  void Send() {
    auto* call = new Call;
    absl::Duration patience = kTooShort;
    {
      absl::MutexLock lock(&mu_);
      ++open_;
      if (++sent_ % (kHurried + 1) == 0) patience = kTestPatience;
    }
    call->context.set_deadline(std::chrono::system_clock::now() +
                               absl::ToChronoMilliseconds(patience));
    stub_->async()->Classify(&call->context, &request_, &call->response,
                             [this, call](const grpc::Status& status) {
                               delete call;
                               Ended(status.error_code());
                             });
  }
  void Ended(grpc::StatusCode code) {
    bool stopping = false;
    {
      absl::MutexLock lock(&mu_);
      ++(code == grpc::StatusCode::OK                  ? ends_.served
         : code == grpc::StatusCode::UNAVAILABLE       ? ends_.unavailable
         : code == grpc::StatusCode::DEADLINE_EXCEEDED ? ends_.expired
                                                       : ends_.refused);
      stopping = stopping_;
    }
    if (!stopping) Send();
    absl::MutexLock lock(&mu_);
    --open_;
  }

  std::unique_ptr<v1::VisionService::Stub> stub_;
  v1::ClassifyRequest request_;
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int open_ ABSL_GUARDED_BY(mu_) = 0;
  int sent_ ABSL_GUARDED_BY(mu_) = 0;
  Ends ends_ ABSL_GUARDED_BY(mu_);
};

TEST(OverloadTest, DeadlinesThatPassAreNoFlood) {
  ServerProcess server(
      {"--model_repository=" + WriteTinyModel(),
       "--max_concurrent_streams=" + std::to_string(kStreams)});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  // Clients elsewhere would take none of the server's processors.
  setpriority(PRIO_PROCESS, gettid(), 10);
  std::vector<std::unique_ptr<HastyClient>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<HastyClient>(server.address()));
  }
  // In seconds: the counts of a flood are of one second each.
  absl::SleepFor(absl::Seconds(3));
  for (const auto& client : clients) {
    WaitUntil(
        [&client] {
          const HastyClient::Ends ends = client->ends();
          return ends.expired >= 100 && ends.served > 0;
        },
        "calls that expire and calls that are served", kTestPatience);
  }
  HastyClient::Ends all;
  for (const auto& client : clients) {
    const HastyClient::Ends ends = client->Stop();
    EXPECT_EQ(ends.unavailable, 0);
    all.served += ends.served;
    all.refused += ends.refused;
    all.expired += ends.expired;
  }
  std::printf("%d served, %d refused, %d expired\n", all.served, all.refused,
              all.expired);
  EXPECT_EQ(SumOf(Samples(HttpGet(server.metrics_port(), "/metrics")),
                  "sfmamba_connections_refused_total", {R"(port="grpc")"}),
            0);
}

}  // namespace
}  // namespace sfmamba
