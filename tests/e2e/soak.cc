// Many mixed requests against a real server: good, bad, cancelled at random
// moments and with deadlines too short. Fails unless every answer is the one
// asked for, the server's counters equal the client's counts, and its memory
// stays flat.
//
//   bazel-bin/tests/e2e/soak --requests=100000
//
// Two models with the same weights: "tiny" is asked what ends the same way each
// time, so that its counters are known exactly; "fickle" is asked what the
// client gives up on at random, where only the server knows which calls it
// finished before that.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/commands/flag_set.h"
#include "client/commands/inputs.h"
#include "client/commands/output/progress_bar.h"
#include "client/rpc/rpc_status.h"
#include "client/rpc/vision_client.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/soak_counts.h"
#include "tests/e2e/soak_requests.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
// Models whose counters must equal the client's, and one that is left alone.
constexpr char kSteady[] = "tiny", kDetector[] = "finder",
               kSegmenter[] = "painter", kFickle[] = "fickle";
constexpr double kMaxGrowth = 1 << 20;  // Bytes in 10,000 requests.

absl::StatusOr<v1::ClassifyResponse> Call(client::VisionClient& client,
                                          const v1::ClassifyRequest& request) {
  return client.Classify(request, kTimeout);
}
absl::StatusOr<v1::DetectResponse> Call(client::VisionClient& client,
                                        const v1::DetectRequest& request) {
  return client.Detect(request, kTimeout);
}
absl::StatusOr<v1::SegmentResponse> Call(client::VisionClient& client,
                                         const v1::SegmentRequest& request) {
  return client.Segment(request, kTimeout);
}

class Soak {
 public:
  Soak(const ServerProcess& server, int requests, const std::string& jpeg)
      : server_(server), requests_(requests), client_(server.address()) {
    const v1::Model model = *client_.GetModel(kSteady, kTimeout);
    good_ = GoodRequests(kSteady, model, jpeg);
    bad_ = BadRequests(kSteady, model, jpeg);
    fickle_ = std::get<v1::ClassifyRequest>(
        GoodRequests(kFickle, model, jpeg)[0].request);
    for (auto& request : GoodDenseRequests(kDetector, kSegmenter, jpeg)) {
      good_.push_back(std::move(request));
    }
    for (auto& request : BadDenseRequests(kDetector, kSegmenter, jpeg)) {
      bad_.push_back(std::move(request));
    }
  }

  // Sends everything; then all has been answered and counted.
  void Run(int concurrency, client::ProgressBar* progress) {
    for (const SoakRequest& soak :
         good_) {  // Alone: what must always come back.
      expected_[soak.name] = Send(soak);
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < concurrency; ++t) {
      threads.emplace_back([this, t, progress] { SendSome(t, progress); });
    }
    for (std::thread& thread : threads) thread.join();
    // The server may still be about to notice the last cancellations.
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (absl::Now() < deadline &&
           ServerMetric(server_.metrics_port(), "sfmamba_in_flight_requests") >
               0) {
      absl::SleepFor(absl::Milliseconds(20));
    }
  }

  // Compares counts and memory; returns how many complaints there were in all.
  int Check() {
    absl::MutexLock lock(&mu_);
    for (const char* model : {kSteady, kDetector, kSegmenter, "_unknown"}) {
      CompareExactly(absl::StrCat("requests of ", model), codes_[model],
                     ServerCounts(server_.metrics_port(),
                                  "sfmamba_requests_total", model, "code"));
      CompareExactly(absl::StrCat("images of ", model), outcomes_[model],
                     ServerCounts(server_.metrics_port(), "sfmamba_items_total",
                                  model, "outcome"));
    }
    CheckFickle();
    CheckMemory();
    return complaints_;
  }

 private:
  // The share of thread `t`, of which each request is drawn at random.
  void SendSome(int t, client::ProgressBar* progress) {
    std::mt19937 random(t);
    for (int i; (i = sent_.fetch_add(1)) < requests_;) {
      const int draw = random() % 100;
      if (draw < 45) {
        CheckAnswer(good_[random() % good_.size()]);
      } else if (draw < 70) {
        Send(bad_[random() % bad_.size()]);
      } else {
        SendFickle(&random);
      }
      if (i % std::max(1, requests_ / 50) == 0) SampleMemory(i, progress);
    }
  }

  // Sends a request that ends the same way each time; the results it got.
  std::string Send(const SoakRequest& soak) {
    absl::Status status;
    std::string results;
    std::visit(
        [&](const auto& request) {
          const auto response = Call(client_, request);
          status = response.status();
          if (!response.ok()) return;
          for (auto result : response->results()) {
            result.clear_error();  // Its details come in any order.
            results += result.SerializeAsString();
          }
        },
        soak.request);
    absl::MutexLock lock(&mu_);
    ++codes_[soak.counts_for][absl::StatusCodeToString(status.code())];
    for (const auto& [outcome, images] : soak.outcomes) {
      if (images > 0) outcomes_[soak.counts_for][outcome] += images;
    }
    if (status.code() != soak.code ||
        client::GetRpcErrorDetails(status).reason != soak.reason) {
      Complain(absl::StrCat(
          soak.name, ": expected ", absl::StatusCodeToString(soak.code), " (",
          soak.reason, "), got ", client::DescribeRpcError(status)));
    }
    return results;
  }

  // Sends a good one, whose answer must be as it was without other requests.
  void CheckAnswer(const SoakRequest& soak) {
    if (Send(soak) == expected_.at(soak.name)) return;
    absl::MutexLock lock(&mu_);
    Complain(absl::StrCat(soak.name, ": another answer than alone"));
  }

  // Sends a good one and gives up on it, or not, after a random time.
  void SendFickle(std::mt19937* random) {
    const absl::Duration patience = absl::Microseconds((*random)() % 8000);
    const int way =
        (*random)() % 3;  // 0: waits, 1: cancels, 2: sets a deadline.
    absl::Notification done;
    absl::Status status;
    const client::CallHandle call =
        client_.Classify(fickle_, way == 2 ? patience : kTimeout,
                         [&](absl::StatusOr<v1::ClassifyResponse> response) {
                           status = response.status();
                           done.Notify();
                         });
    if (way == 1) {
      absl::SleepFor(patience);
      call.Cancel();
    }
    WaitFor(done, "the answer", kTestPatience);
    absl::MutexLock lock(&mu_);
    ++fickle_codes_[absl::StatusCodeToString(status.code())];
    const bool asked_for = status.ok() ||
                           (way == 1 && absl::IsCancelled(status)) ||
                           (way == 2 && (absl::IsDeadlineExceeded(status) ||
                                         absl::IsResourceExhausted(status)));
    if (!asked_for) {
      Complain(absl::StrCat("fickle: ", client::DescribeRpcError(status)));
    }
  }

  void SampleMemory(int done, client::ProgressBar* progress) {
    const double bytes =
        ServerMetric(server_.metrics_port(), "process_resident_memory_bytes");
    absl::MutexLock lock(&mu_);
    memory_.push_back({static_cast<double>(done), bytes});
    progress->Show(static_cast<double>(done) / requests_,
                   absl::StrFormat("%d requests, server at %.0f MiB", done,
                                   bytes / (1 << 20)));
  }

  void CompareExactly(const std::string& what, const Counts& client,
                      const Counts& server) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::cout << what << ":" << ToText(client) << "\n";
    if (client == server) return;
    Complain(absl::StrCat(what, ": the server counted", ToText(server)));
  }

  // A call that the client gave up on may have ended on the server in any of
  // three ways, or never have reached it; what the client saw end well, ended
  // well.
  void CheckFickle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Counts codes = ServerCounts(server_.metrics_port(),
                                "sfmamba_requests_total", kFickle, "code");
    Counts outcomes = ServerCounts(server_.metrics_port(),
                                   "sfmamba_items_total", kFickle, "outcome");
    std::cout << "requests of fickle:" << ToText(fickle_codes_)
              << "; by the server:" << ToText(codes) << "\n";
    int64_t client_total = 0, server_total = 0;
    for (const auto& count : fickle_codes_) client_total += count.second;
    for (const auto& count : codes) server_total += count.second;
    if (server_total > client_total) Complain("fickle: calls that nobody made");
    if (codes["OK"] < fickle_codes_["OK"]) {
      Complain("fickle: answers that were not counted");
    }
    int64_t images = 0;
    for (const auto& [outcome, count] : outcomes) {
      images += count;
      if (outcome == "error") {
        Complain(absl::StrCat("fickle: outcome ", outcome));
      }
    }
    // An image may end well whose caller left in the last moment, so that only
    // the sums must agree.
    if (images != server_total) {
      Complain(absl::StrCat("fickle: ", server_total,
                            " requests of one image, ", images, " images"));
    }
  }

  void CheckMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const double growth = Growth(memory_);
    if (memory_.empty() || std::isnan(growth)) return;
    std::cout << absl::StrFormat(
        "memory: %.1f MiB at the end, growing by %.3f MiB in 10,000 requests\n",
        memory_.back().resident_bytes / (1 << 20), growth / (1 << 20));
    if (requests_ < 12500) {
      std::cout << "memory: too few requests to judge\n";
    } else if (!(growth <= kMaxGrowth)) {
      Complain("memory: grows by more than 1 MiB in 10,000 requests");
    }
    if (!(memory_.back().resident_bytes > 0)) Complain("memory: not measured");
  }

  void Complain(const std::string& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (++complaints_ <= 20) std::cout << "FAILED " << what << "\n";
  }

  const ServerProcess& server_;
  const int requests_;
  client::VisionClient client_;
  std::vector<SoakRequest> good_, bad_;
  v1::ClassifyRequest fickle_;
  std::map<std::string, std::string> expected_;  // Set before threads run.
  std::atomic<int> sent_{0};

  absl::Mutex mu_;
  // By model.
  std::map<std::string, Counts> codes_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Counts> outcomes_ ABSL_GUARDED_BY(mu_);
  Counts fickle_codes_ ABSL_GUARDED_BY(mu_);
  std::vector<MemorySample> memory_ ABSL_GUARDED_BY(mu_);
  int complaints_ ABSL_GUARDED_BY(mu_) = 0;
};

int Main(const std::vector<std::string>& arguments) {
  int requests = 100000;
  int concurrency = 16;
  std::string binary = "server/sfmamba_server";
  std::string jpeg_path = "client/samples/render_01.jpg";
  client::FlagSet flags(
      "soak [flags]",
      "Sends mixed requests to a server of its own and checks answers,\n"
      "counters and memory.");
  flags.Add("requests", "N", "how many", &requests);
  flags.Add("concurrency", "N", "requests in flight", &concurrency);
  flags.Add("server", "BINARY", "the server to start", &binary);
  flags.Add("jpeg", "FILE", "a picture to send", &jpeg_path);
  const auto rest = flags.Parse(arguments);
  if (!rest.ok() || !rest->empty() || flags.help_requested()) {
    std::cerr << rest.status().message() << "\n" << flags.Help();
    return 2;
  }
  const auto jpeg = client::ReadFile(jpeg_path);
  if (!jpeg.ok()) {
    std::cerr << jpeg.status().message() << "\n";
    return 2;
  }

  const std::string repository = WriteTinyModel();
  AddRandomDenseModels(repository);
  int complaints = 0;
  {
    ServerProcess server({absl::StrCat("--model_repository=", repository),
                          absl::StrCat("--model_path=", repository, "/tiny/1"),
                          absl::StrCat("--model_name=", kFickle),
                          "--random_init", "--drain_delay=0s"},
                         binary);
    if (!server.WaitUntilServing()) {
      std::cout << "FAILED the server does not serve:\n" << server.output();
      return 1;
    }
    {
      client::ProgressBar progress(std::cerr, isatty(STDERR_FILENO) == 1);
      Soak soak(server, requests, *jpeg);
      const absl::Time start = absl::Now();
      soak.Run(concurrency, &progress);
      std::cout << requests << " requests in "
                << absl::FormatDuration(absl::Now() - start) << "\n";
      complaints = soak.Check();
    }
    server.Signal(SIGTERM);
    const int exit_code = server.Wait();
    if (exit_code != 0) {
      ++complaints;
      std::cout << "FAILED the server's exit code is " << exit_code << "\n";
    }
  }
  std::filesystem::remove_all(repository);
  std::cout << (complaints == 0 ? "passed" : "failed") << "\n";
  return complaints == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) {
  // Run by hand, files are named from the root of the runfiles, as in a test.
  const std::string runfiles = absl::StrCat(argv[0], ".runfiles/sfmamba");
  if (std::filesystem::exists(runfiles)) {
    std::filesystem::current_path(runfiles);
  }
  return sfmamba::Main({argv + 1, argv + argc});
}
