// Tests a client that requests all of the server's capacity, beside a client
// that requests little.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/attacks/rounds.h"
#include "tests/e2e/envoy_process.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/server/security/token_texts.h"
#include "tests/testing/certificates.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

// Keeps `calls` requests of 16 images in flight. Replaces each request that
// ends, even if the server refused it.
class GreedyClient {
 public:
  struct Calls {
    int calls = 200;
    std::string model = "tiny";
    // The timeout of each call. If unset, the server's default applies.
    std::optional<std::chrono::seconds> deadline;
    // The pause between a refusal and the next request.
    absl::Duration pause = absl::Milliseconds(1);
    std::string token = {};  // If empty, sends no token.
  };

  GreedyClient(const std::string& address, const Calls& calls)
      : GreedyClient(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()),
            calls) {}
  GreedyClient(const std::shared_ptr<grpc::Channel>& channel,
               const Calls& calls)
      : stub_(v1::VisionService::NewStub(channel)),
        deadline_(calls.deadline),
        pause_(calls.pause),
        token_(calls.token) {
    request_.set_model(calls.model);
    for (int i = 0; i < 16; ++i) {
      v1::PixelBuffer& pixels = *request_.add_images()->mutable_pixels();
      pixels.set_width(64);
      pixels.set_height(64);
      pixels.set_format(v1::PixelBuffer::GRAY8);
      pixels.set_data(std::string(64 * 64, 'a'));
    }
    for (int i = 0; i < calls.calls; ++i) Send();
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

  // Returns the number of this client's images that were answered.
  int images_answered() const {
    absl::MutexLock lock(&mu_);
    return answered_ * request_.images_size();
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
  };

  void Send() {
    auto* call = new Call;
    if (deadline_.has_value()) {
      call->context.set_deadline(std::chrono::system_clock::now() + *deadline_);
    }
    if (!token_.empty()) {
      call->context.AddMetadata("authorization", "Bearer " + token_);
    }
    {
      absl::MutexLock lock(&mu_);
      ++open_;
    }
    stub_->async()->Classify(&call->context, &request_, &call->response,
                             [this, call](const grpc::Status& status) {
                               const bool answered = status.ok();
                               // The call's context holds a reference to the
                               // channel. After Ended(), the GreedyClient may
                               // be destroyed. If the call still existed then,
                               // this gRPC thread would own the last reference
                               // to the channel and destroy it. gRPC's own
                               // threads must not destroy a channel.
                               delete call;
                               Ended(answered);
                             });
  }
  void Ended(bool answered) {
    // Pauses after a refusal, so that the client's own thread does not use up
    // the server's CPUs.
    if (!answered) absl::SleepFor(pause_);
    {
      absl::MutexLock lock(&mu_);
      answered_ += answered;
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
  const std::optional<std::chrono::seconds> deadline_;
  const absl::Duration pause_;
  const std::string token_;
  v1::ClassifyRequest request_;
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int open_ ABSL_GUARDED_BY(mu_) = 0;
  int answered_ ABSL_GUARDED_BY(mu_) = 0;
};

// Processes that waste CPU time. They pause for half of each second, so that
// the server's predictions of batch times are wrong.
class BusyProcesses {
 public:
  explicit BusyProcesses(int count) {
    const char* const arguments[] = {"sh", "-c", "while :; do :; done",
                                     nullptr};
    for (pid_t& pid : processes_ = std::vector<pid_t>(count)) {
      posix_spawn(&pid, "/bin/sh", nullptr, nullptr,
                  const_cast<char* const*>(arguments), environ);
    }
    pauses_ = std::thread([this] {
      int signal = SIGSTOP;
      while (!stop_.WaitForNotificationWithTimeout(absl::Milliseconds(500))) {
        for (const pid_t pid : processes_) kill(pid, signal);
        signal = signal == SIGSTOP ? SIGCONT : SIGSTOP;
      }
    });
  }
  ~BusyProcesses() {
    stop_.Notify();
    pauses_.join();
    for (const pid_t pid : processes_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> processes_;
  absl::Notification stop_;
  std::thread pauses_;
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
  // The two clients differ by their addresses.
  Victim victim(absl::StrCat("[::1]:", server.port()));
  {
    GreedyClient greedy(server.address(),
                        {200, "tiny", std::chrono::seconds(2)});
    absl::SleepFor(absl::Seconds(5));
  }
  const Victim::Count count = victim.Stop();
  EXPECT_GE(count.sent, 80);
  EXPECT_GE(count.answered, 0.95 * count.sent) << count.first_error;
  EXPECT_GT(Refused(server, "CLIENT_QUOTA"), 0);
}

// The greedy client keeps about 150 images of a large network in the queue.
// Computing them takes longer than the deadline of the other client.
TEST(GreedyClientTest, WithoutDeadlinesItMakesNobodyLate) {
  const std::string repository = WriteTinyModel();
  std::filesystem::create_directories(repository + "/large/1");
  std::ofstream(repository + "/large/1/config.textproto")
      << "task: CLASSIFICATION num_classes: 10 "
         "backbone { variant: 'sf_mamba_t' } "
         "batching { max_batch_size: 8 max_queue_items: 300 }";
  ServerProcess server(
      {"--model_repository=" + repository, "--random_init", "--host=::"});
  if (server.port() == 0) GTEST_SKIP() << "no IPv6 on this machine";
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  GreedyClient greedy(server.address(),
                      {20, "large", std::nullopt, absl::Milliseconds(50)});
  absl::SleepFor(absl::Seconds(3));
  Victim victim(absl::StrCat("[::1]:", server.port()), absl::Milliseconds(500),
                "large");
  absl::SleepFor(absl::Seconds(5));
  const Victim::Count count = victim.Stop();
  EXPECT_GE(count.sent, 8);
  // Would fail if the server computed the greedy client's requests first.
  EXPECT_GE(count.answered, 0.75 * count.sent) << count.first_error;
}

// Most calls are refused and repeated at once. Other processes sometimes leave
// little CPU time, so admitted requests run slower than predicted.
TEST(GreedyClientTest, RefusedCallsThatRepeatAtOnceLeaveTimeForAnother) {
  ServerProcess server({"--model_repository=" + WriteTinyModel(), "--host=::",
                        "--memory_budget_bytes=1536MiB", "--drain_delay=0s"});
  if (server.port() == 0) GTEST_SKIP() << "no IPv6 on this machine";
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  Rounds rounds;
  rounds.address = absl::StrCat("[::1]:", server.port());
  const BusyProcesses others(2);
  ExpectFiveRoundsHarmless(rounds, &server, [&](absl::Time end) {
    const GreedyClient greedy(
        server.address(),
        {900, "tiny", std::chrono::seconds(2), absl::ZeroDuration()});
    absl::SleepFor(end - base::SteadyNow());
  });
}

// Returns a channel with one connection from a local address to Envoy's `port`.
// The channel has already received the number of concurrent calls that Envoy
// allows (max_concurrent_streams). Otherwise the client could start more calls
// at once. Envoy would refuse the excess calls and then close the connection.
std::shared_ptr<grpc::Channel> ChannelFrom(const std::string& address,
                                           int port) {
  const int socket = RawConnection(port, address).Release();
  fcntl(socket, F_SETFL, O_NONBLOCK);
  std::shared_ptr<grpc::Channel> channel =
      grpc::CreateInsecureChannelFromFd("envoy", socket);
  grpc::ClientContext context;
  v1::Model model;
  // Any answer to this call, even an error, arrives after Envoy's settings.
  v1::VisionService::NewStub(channel)->GetModel(&context, {}, &model);
  return channel;
}

// Envoy sends the requests of two callers over the same connections. The
// callers differ by address or by token. The server answers 200 images per
// second. The polite caller requests 50 per second, and the greedy caller far
// more. If the server counted them as one client, the polite caller's requests
// would miss their deadline of one second.
class BehindEnvoyTest : public testing::TestWithParam<bool> {};

TEST_P(BehindEnvoyTest, APoliteCallerHasItsShareBesideAGreedyOne) {
  if (!EnvoyProcess::IsInstalled()) GTEST_SKIP() << "Envoy is not on PATH";
  const bool by_token = GetParam();
  const std::string tokens = security::ClientText("polite", "one", "INFER") +
                             security::ClientText("greedy", "two", "INFER");
  ServerProcess server(
      {"--model_repository=" + WriteTinyModel("max_batch_size: 1"),
       by_token ? "--token_file=" + WriteTestFile("tokens", tokens)
                : "--trusted_proxies=127.0.0.1/32"},
      "tests/e2e/fleet/sleepy_server");
  ASSERT_TRUE(server.WaitForLog("\"msg\":\"serving\"")) << server.output();
  const EnvoyProcess envoy(server, MakeCertificate());
  const auto polite = [&] {
    Victim victim(
        ChannelFrom(by_token ? "127.0.0.1" : "127.0.0.2", envoy.port()),
        absl::Milliseconds(20), by_token ? "one" : "", "tiny",
        absl::Seconds(1));
    absl::SleepFor(absl::Seconds(5));
    const Victim::Count count = victim.Stop();
    std::cout << count.answered << " of " << count.sent << " answered, in "
              << count.mean << ", at most " << count.slowest << "\n";
    return count;
  };
  const Victim::Count alone = polite();
  EXPECT_EQ(alone.answered, alone.sent) << alone.first_error;

  const GreedyClient greedy(
      ChannelFrom(by_token ? "127.0.0.1" : "127.0.0.3", envoy.port()),
      {200, "tiny", std::chrono::seconds(1), absl::Milliseconds(1),
       by_token ? "two" : ""});
  const Victim::Count beside = polite();
  std::cout << "the greedy client: " << greedy.images_answered()
            << " images answered\n";
  EXPECT_GE(beside.answered, 0.95 * beside.sent) << beside.first_error;
  EXPECT_GT(greedy.images_answered(), beside.answered);
  EXPECT_GT(Refused(server, "CLIENT_QUOTA"), 0);
}

INSTANTIATE_TEST_SUITE_P(, BehindEnvoyTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& by_token) {
                           return by_token.param ? "ByToken" : "ByAddress";
                         });

}  // namespace
}  // namespace sfmamba
