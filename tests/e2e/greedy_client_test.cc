// A client that asks for all that the server can do, beside one that asks for
// little.

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

// Keeps `calls` requests of 16 images and with a deadline of two seconds open,
// each followed by the next as soon as it ends, refused or not.
class GreedyClient {
 public:
  GreedyClient(const std::string& address, int calls)
      : stub_(v1::VisionService::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    request_.set_model("tiny");
    for (int i = 0; i < 16; ++i) {
      v1::PixelBuffer& pixels = *request_.add_images()->mutable_pixels();
      pixels.set_width(64);
      pixels.set_height(64);
      pixels.set_format(v1::PixelBuffer::GRAY8);
      pixels.set_data(std::string(64 * 64, 'a'));
    }
    for (int i = 0; i < calls; ++i) Send();
  }
  ~GreedyClient() {
    TimeLimit limit("the greedy client's answers", kTestPatience);
    const auto none_open = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return open_ == 0;
    };
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    mu_.Await(absl::Condition(&none_open));
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
  };

  void Send() {
    auto* call = new Call;
    call->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::seconds(2));
    {
      absl::MutexLock lock(&mu_);
      ++open_;
    }
    stub_->async()->Classify(&call->context, &request_, &call->response,
                             [this, call](const grpc::Status& status) {
                               Ended(status.ok());
                               delete call;
                             });
  }
  void Ended(bool answered) {
    // Who is refused looks again after a moment, so that the client's own
    // thread is not what the server's processors are spent on.
    if (!answered) absl::SleepFor(absl::Milliseconds(1));
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) {
        --open_;
        return;
      }
    }
    Send();
    absl::MutexLock lock(&mu_);
    --open_;
  }

  const std::unique_ptr<v1::VisionService::Stub> stub_;
  v1::ClassifyRequest request_;
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int open_ ABSL_GUARDED_BY(mu_) = 0;
};

double Refused(const ServerProcess& server, const std::string& reason) {
  return SumOf(Samples(HttpGet(server.metrics_port(), "/metrics")),
               "sfmamba_admission_rejections_total",
               {absl::StrCat("reason=\"", reason, "\"")});
}

TEST(GreedyClientTest, LeavesTimeAndPlacesForAnother) {
  ServerProcess server({"--model_repository=" + WriteTinyModel(), "--host=::"});
  if (server.port() == 0) GTEST_SKIP() << "no IPv6 on this machine";
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  // The two differ by their addresses.
  Victim victim(absl::StrCat("[::1]:", server.port()));
  {
    GreedyClient greedy(server.address(), 200);
    absl::SleepFor(absl::Seconds(5));
  }
  const Victim::Count count = victim.Stop();
  EXPECT_GE(count.sent, 80);
  EXPECT_GE(count.answered, 0.95 * count.sent) << count.first_error;
  EXPECT_GT(Refused(server, "CLIENT_QUOTA"), 0);
}

}  // namespace
}  // namespace sfmamba
