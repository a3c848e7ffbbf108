// Many mixed requests at twice what a real server can do: it must refuse half
// of them and stay whole. Fails unless each request ends as asked for or with a
// refusal, the server's counters equal the client's counts, and its memory
// stays flat.
//
//   bazel-bin/tests/e2e/overload_soak --requests=100000
//
// First a closed loop finds what the server can do. Then requests come in an
// open loop, whatever happened to those before. They wait for a batch for a
// fifth of a second at most, which the server alone judges, so that both sides
// know how each one ended.

#include <signal.h>

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
#include "absl/time/clock.h"
#include "client/commands/flag_set.h"
#include "client/commands/inputs.h"
#include "client/rpc/rpc_status.h"
#include "client/rpc/vision_client.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/soak_counts.h"
#include "tests/e2e/soak_requests.h"

namespace sfmamba {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr absl::Duration kQueueWait = absl::Milliseconds(200);
constexpr char kClassifier[] = "tiny", kDetector[] = "finder",
               kSegmenter[] = "painter";
constexpr double kMaxGrowth = 1 << 20;  // Bytes in 10,000 requests.
// So many are in flight at most: the client's own memory is not what is tested.
constexpr int kMaxInFlight = 2000;
constexpr int kConcurrency = 32;  // Of the closed loop.

// The same request with a limited wait, and of any priority.
SoakRequest Impatient(SoakRequest soak, int number) {
  std::visit(
      [number](auto& request) {
        v1::RequestOptions& options = *request.mutable_options();
        if (!options.has_max_queue_wait()) {
          options.mutable_max_queue_wait()->set_nanos(
              absl::ToInt64Nanoseconds(kQueueWait));
        }
        options.set_priority(
            static_cast<v1::RequestOptions::Priority>(number % 4));
      },
      soak.request);
  return soak;
}

int Images(const SoakRequest& soak) {
  int images = 0;
  for (const auto& outcome : soak.outcomes) images += outcome.second;
  return images;
}

class OverloadSoak {
 public:
  OverloadSoak(const ServerProcess& server, const std::string& jpeg)
      : server_(server), client_(server.address()) {
    const v1::Model model = *client_.GetModel(kClassifier, kTimeout);
    for (const auto& some : {GoodRequests(kClassifier, model, jpeg),
                             BadRequests(kClassifier, model, jpeg),
                             GoodDenseRequests(kDetector, kSegmenter, jpeg),
                             BadDenseRequests(kDetector, kSegmenter, jpeg)}) {
      for (const SoakRequest& soak : some) {
        // A partial answer is OK even if its images were refused.
        if (soak.outcomes.size() > 1) continue;
        const int number = static_cast<int>(requests_.size());
        requests_.push_back(Impatient(soak, number));
      }
    }
  }

  // Requests a second that the server ends if some are always in flight.
  double Capacity(absl::Duration length) {
    const absl::Time start = absl::Now();
    std::atomic<int> ended{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kConcurrency; ++t) {
      threads.emplace_back([this, t, start, length, &ended] {
        std::mt19937 random(t);
        while (absl::Now() < start + length) {
          const SoakRequest& soak = Draw(&random);
          std::visit(
              [&](const auto& request) {
                Record(soak, Call(request).status());
              },
              soak.request);
          ++ended;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ended / absl::ToDoubleSeconds(absl::Now() - start);
  }

  // Sends `requests` at `rate` a second and waits until all have ended.
  void Run(int requests, double rate) {
    std::mt19937 random(1);
    std::exponential_distribution<double> gap(rate);
    absl::Time at = absl::Now();
    for (int i = 0; i < requests; ++i) {
      at += absl::Seconds(gap(random));
      absl::SleepFor(at - absl::Now());
      const SoakRequest& soak = Draw(&random);
      if (InFlight() >= kMaxInFlight) {
        ++not_sent_;
      } else {
        Send(soak);
      }
      if (i % std::max(1, requests / 50) == 0) SampleMemory(i);
    }
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](int* in_flight) { return *in_flight == 0; }, &in_flight_));
  }

  // Compares counts and memory; returns how many complaints there were in all.
  int Check(int requests, double least_refused) {
    absl::MutexLock lock(&mu_);
    int64_t all = 0, ok = 0, refused = 0;
    for (const char* model : {kClassifier, kDetector, kSegmenter, "_unknown"}) {
      CompareCounts(model);
      for (const auto& [code, count] : codes_[model]) {
        all += count;
        if (code == "OK") ok += count;
        if (code == "RESOURCE_EXHAUSTED") refused += count;
      }
    }
    std::cout << absl::StrFormat(
        "%d requests ended, %d OK, %d refused; %d were not sent because %d "
        "were in flight\n",
        all, ok, refused, not_sent_, kMaxInFlight);
    if (ok == 0) Complain("nothing was answered");
    if (refused < least_refused * requests) {
      Complain("too few were refused for an overload");
    }
    CheckMemory(requests);
    return complaints_;
  }

 private:
  const SoakRequest& Draw(std::mt19937* random) const {
    return requests_[(*random)() % requests_.size()];
  }

  absl::StatusOr<v1::ClassifyResponse> Call(
      const v1::ClassifyRequest& request) {
    return client_.Classify(request, kTimeout);
  }
  absl::StatusOr<v1::DetectResponse> Call(const v1::DetectRequest& request) {
    return client_.Detect(request, kTimeout);
  }
  absl::StatusOr<v1::SegmentResponse> Call(const v1::SegmentRequest& request) {
    return client_.Segment(request, kTimeout);
  }

  template <typename Response>
  client::VisionClient::Done<Response> Ends(const SoakRequest& soak) {
    return [this, &soak](absl::StatusOr<Response> response) {
      Record(soak, response.status());
      absl::MutexLock lock(&mu_);
      --in_flight_;
    };
  }

  void Send(const SoakRequest& soak) {
    {
      absl::MutexLock lock(&mu_);
      ++in_flight_;
    }
    if (auto* classify = std::get_if<v1::ClassifyRequest>(&soak.request)) {
      client_.Classify(*classify, kTimeout, Ends<v1::ClassifyResponse>(soak));
    } else if (auto* detect = std::get_if<v1::DetectRequest>(&soak.request)) {
      client_.Detect(*detect, kTimeout, Ends<v1::DetectResponse>(soak));
    } else {
      client_.Segment(std::get<v1::SegmentRequest>(soak.request), kTimeout,
                      Ends<v1::SegmentResponse>(soak));
    }
  }

  void Record(const SoakRequest& soak, const absl::Status& status) {
    const std::string reason = client::GetRpcErrorDetails(status).reason;
    absl::MutexLock lock(&mu_);
    ++codes_[soak.counts_for][absl::StatusCodeToString(status.code())];
    ++reasons_[soak.counts_for][reason];
    images_[soak.counts_for] += Images(soak);
    const bool is_refused =
        absl::IsResourceExhausted(status) ||
        (absl::IsDeadlineExceeded(status) && reason == "EXPIRED_IN_QUEUE");
    if (!is_refused && (status.code() != soak.code || reason != soak.reason)) {
      Complain(absl::StrCat(soak.name, ": ", client::DescribeRpcError(status)));
    }
  }

  void CompareCounts(const std::string& model)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const int port = server_.metrics_port();
    const auto compare =
        [&](const Counts& own,
            const Counts& server) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
          std::cout << model << ":" << ToText(own) << "\n";
          if (own == server) return;
          Complain(absl::StrCat(model, ": the server counted", ToText(server)));
        };
    compare(codes_[model],
            ServerCounts(port, "sfmamba_requests_total", model, "code"));
    compare(reasons_[model],
            ServerCounts(port, "sfmamba_requests_total", model, "reason"));
    int64_t images = 0;
    for (const auto& [outcome, count] :
         ServerCounts(port, "sfmamba_items_total", model, "outcome")) {
      images += count;
    }
    if (images != images_[model]) {
      Complain(absl::StrCat(model, ": ", images_[model],
                            " images, the server counted ", images));
    }
  }

  void SampleMemory(int done) {
    const double bytes =
        ServerMetric(server_.metrics_port(), "process_resident_memory_bytes");
    absl::MutexLock lock(&mu_);
    memory_.push_back({static_cast<double>(done), bytes});
  }

  void CheckMemory(int requests) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const double growth = Growth(memory_);
    std::cout << absl::StrFormat(
        "memory: %.1f MiB at the end, growing by %.3f MiB in 10,000 requests\n",
        memory_.back().resident_bytes / (1 << 20), growth / (1 << 20));
    if (requests < 12500) {
      std::cout << "memory: too few requests to judge\n";
    } else if (!(growth <= kMaxGrowth)) {
      Complain("memory: grows by more than 1 MiB in 10,000 requests");
    }
  }

  int InFlight() const {
    absl::MutexLock lock(&mu_);
    return in_flight_;
  }

  void Complain(const std::string& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (++complaints_ <= 20) std::cout << "FAILED " << what << "\n";
  }

  const ServerProcess& server_;
  std::vector<SoakRequest> requests_;  // Set before threads run.
  int not_sent_ = 0;

  mutable absl::Mutex mu_;
  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  // By model.
  std::map<std::string, Counts> codes_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Counts> reasons_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int64_t> images_ ABSL_GUARDED_BY(mu_);
  std::vector<MemorySample> memory_ ABSL_GUARDED_BY(mu_);
  int complaints_ ABSL_GUARDED_BY(mu_) = 0;

  client::VisionClient client_;  // Last: waits for the calls in flight.
};

int Main(const std::vector<std::string>& arguments) {
  int requests = 100000;
  double overload = 2;
  std::string binary = "server/sfmamba_server";
  std::string jpeg_path = "client/samples/render_01.jpg";
  client::FlagSet flags(
      "overload_soak [flags]",
      "Sends mixed requests to a server of its own, more than it can do, and\n"
      "checks answers, counters and memory.");
  flags.Add("requests", "N", "how many", &requests);
  flags.Add("overload", "X", "how many times what the server can do",
            &overload);
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
                          "--random_init", "--drain_delay=0s"},
                         binary);
    if (!server.WaitUntilServing()) {
      std::cout << "FAILED the server does not serve:\n" << server.output();
      return 1;
    }
    {
      OverloadSoak soak(server, *jpeg);
      const double capacity = soak.Capacity(absl::Seconds(3));
      const absl::Time start = absl::Now();
      soak.Run(requests, overload * capacity);
      std::cout << absl::StrFormat(
          "%d requests in %s, %.0f a second could be done\n", requests,
          absl::FormatDuration(absl::Now() - start), capacity);
      complaints = soak.Check(requests, overload >= 2 ? 0.1 : 0);
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
