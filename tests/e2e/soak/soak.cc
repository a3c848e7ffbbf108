// Sends many mixed requests to a real server: valid, invalid, cancelled at
// random times, and with deadlines that are too short. Every answer must be as
// expected. The server's counters must equal the client's counts, and its
// memory must not grow.
//
//   bazel-bin/tests/e2e/soak/soak --requests=100000
//
// The models "tiny" and "fickle" have the same weights. "tiny" gets only
// requests that always end in the same way, so its counters are known exactly.
// "fickle" gets requests that the client abandons at random. Only the server
// knows which of these requests it has completed.

#include <unistd.h>

#include <algorithm>
#include <atomic>
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
#include "client/commands/output/progress_bar.h"
#include "client/rpc/rpc_status.h"
#include "client/rpc/vision_client.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/soak/soak_counts.h"
#include "tests/e2e/soak/soak_requests.h"
#include "tests/e2e/soak/soak_run.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

// The names of the models. The server's counters must equal the client's
// counts, except for kFickle.
constexpr char kSteady[] = "tiny", kDetector[] = "finder",
               kSegmenter[] = "painter", kFickle[] = "fickle";

class Soak {
 public:
  Soak(const SoakStand& stand, SoakReport* report)
      : server_(stand.server),
        requests_(stand.requests),
        report_(*report),
        client_(stand.server.address()) {
    const v1::Model model = *client_.GetModel(kSteady, kSoakTimeout);
    good_ = GoodRequests(kSteady, model, stand.jpeg);
    bad_ = BadRequests(kSteady, model, stand.jpeg);
    fickle_ = std::get<v1::ClassifyRequest>(
        GoodRequests(kFickle, model, stand.jpeg)[0].request);
    for (auto& request : GoodDenseRequests(kDetector, kSegmenter, stand.jpeg)) {
      good_.push_back(std::move(request));
    }
    for (auto& request : BadDenseRequests(kDetector, kSegmenter, stand.jpeg)) {
      bad_.push_back(std::move(request));
    }
  }

  // Sends all requests. Returns when all of them have been answered and
  // counted.
  void Run(int concurrency, client::ProgressBar* progress) {
    for (const SoakRequest& soak :
         good_) {  // Sent alone, to store the expected answer.
      expected_[soak.name] = Send(soak);
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < concurrency; ++t) {
      threads.emplace_back([this, t, progress] { SendSome(t, progress); });
    }
    for (std::thread& thread : threads) thread.join();
    // Waits, because the server may not have noticed the last cancellations
    // yet.
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (absl::Now() < deadline &&
           ServerMetric(server_.metrics_port(), "sfmamba_in_flight_requests") >
               0) {
      absl::SleepFor(absl::Milliseconds(20));
    }
  }

  // Compares the client's counts with the server's and checks the server's
  // memory.
  void Check() {
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
    report_.CheckMemory(requests_);
  }

 private:
  // Sends randomly drawn requests on thread `t` until all threads together have
  // sent enough.
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

  // Sends a request that always ends in the same way and returns its results.
  std::string Send(const SoakRequest& soak) {
    absl::Status status;
    std::string results;
    std::visit(
        [&](const auto& request) {
          const auto response = Call(client_, request);
          status = response.status();
          if (!response.ok()) return;
          for (auto result : response->results()) {
            // The details of an error have no fixed order.
            result.clear_error();
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
      report_.Complain(absl::StrCat(
          soak.name, ": expected ", absl::StatusCodeToString(soak.code), " (",
          soak.reason, "), got ", client::DescribeRpcError(status)));
    }
    return results;
  }

  // Sends a valid request. Its answer must be the same as when the request was
  // sent alone.
  void CheckAnswer(const SoakRequest& soak) {
    if (Send(soak) == expected_.at(soak.name)) return;
    report_.Complain(absl::StrCat(soak.name, ": another answer than alone"));
  }

  // Sends a valid request to "fickle". In two of three cases, abandons it after
  // a random time.
  void SendFickle(std::mt19937* random) {
    const absl::Duration patience = absl::Microseconds((*random)() % 8000);
    // 0: waits, 1: cancels, 2: sets a deadline.
    const int way = (*random)() % 3;
    absl::Notification done;
    absl::Status status;
    const client::CallHandle call =
        client_.Classify(fickle_, way == 2 ? patience : kSoakTimeout,
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
      report_.Complain(
          absl::StrCat("fickle: ", client::DescribeRpcError(status)));
    }
  }

  void SampleMemory(int done, client::ProgressBar* progress) {
    const double bytes = report_.SampleMemory(server_, done);
    progress->Show(static_cast<double>(done) / requests_,
                   absl::StrFormat("%d requests, server at %.0f MiB", done,
                                   bytes / (1 << 20)));
  }

  void CompareExactly(const std::string& what, const Counts& client,
                      const Counts& server) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::cout << what << ":" << ToText(client) << "\n";
    if (client == server) return;
    report_.Complain(
        absl::StrCat(what, ": the server counted", ToText(server)));
  }

  // Checks the counters of "fickle". A call that the client abandoned may have
  // ended in any way on the server, or may never have arrived. A call that
  // ended with OK for the client must have ended with OK on the server.
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
    if (server_total > client_total)
      report_.Complain("fickle: calls that nobody made");
    if (codes["OK"] < fickle_codes_["OK"]) {
      report_.Complain("fickle: answers that were not counted");
    }
    int64_t images = 0;
    for (const auto& [outcome, count] : outcomes) {
      images += count;
      if (outcome == "error") {
        report_.Complain(absl::StrCat("fickle: outcome ", outcome));
      }
    }
    // If a caller leaves at the last moment, the server may complete the image
    // although the call ends with an error. The number of completed images may
    // therefore differ from the number of successful calls. Each request has
    // one image, so the totals over all outcomes and codes must be equal.
    if (images != server_total) {
      report_.Complain(absl::StrCat("fickle: ", server_total,
                                    " requests of one image, ", images,
                                    " images"));
    }
  }

  const ServerProcess& server_;
  const int requests_;
  SoakReport& report_;
  client::VisionClient client_;
  std::vector<SoakRequest> good_, bad_;
  v1::ClassifyRequest fickle_;
  // Not changed after the threads start.
  std::map<std::string, std::string> expected_;
  std::atomic<int> sent_{0};

  absl::Mutex mu_;
  // The following maps count by model.
  std::map<std::string, Counts> codes_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Counts> outcomes_ ABSL_GUARDED_BY(mu_);
  Counts fickle_codes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) {
  int concurrency = 16;
  sfmamba::client::FlagSet flags(
      "soak [flags]",
      "Sends mixed requests to a server of its own and checks answers,\n"
      "counters and memory.");
  flags.Add("concurrency", "N", "requests in flight", &concurrency);
  return sfmamba::RunSoak(argc, argv, &flags,
                          [&concurrency](const sfmamba::SoakStand& stand,
                                         sfmamba::SoakReport* report) {
                            sfmamba::client::ProgressBar progress(
                                std::cerr, isatty(STDERR_FILENO) == 1);
                            sfmamba::Soak soak(stand, report);
                            const absl::Time start = absl::Now();
                            soak.Run(concurrency, &progress);
                            std::cout
                                << stand.requests << " requests in "
                                << absl::FormatDuration(absl::Now() - start)
                                << "\n";
                            soak.Check();
                          });
}
