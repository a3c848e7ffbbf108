// Sends many mixed requests to a real server at twice its capacity. The server
// must refuse about half of them and stay healthy. Each request must end as
// expected or be refused. The server's counters must equal the client's counts,
// and its memory must not grow.
//
//   bazel-bin/tests/e2e/soak/overload_soak --requests=100000
//
// First, a few clients that each wait for their answers measure the server's
// capacity. Then requests are sent at a fixed average rate, without waiting for
// answers. A request's max_queue_wait is 0.2 s by default. The server refuses a
// request that waits longer for its batch. Only the server measures this wait,
// so the client and the server count the same outcome. With a deadline, they
// could disagree on whether an answer was late.

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
#include "absl/time/clock.h"
#include "client/commands/flag_set.h"
#include "client/rpc/rpc_status.h"
#include "client/rpc/vision_client.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/soak/soak_counts.h"
#include "tests/e2e/soak/soak_requests.h"
#include "tests/e2e/soak/soak_run.h"

namespace sfmamba {
namespace {

constexpr absl::Duration kQueueWait = absl::Milliseconds(200);
constexpr char kClassifier[] = "tiny", kDetector[] = "finder",
               kSegmenter[] = "painter";
// Limits the number of requests in flight and thus the client's own memory.
constexpr int kMaxInFlight = 2000;
// The number of requests in flight while the capacity is measured.
constexpr int kConcurrency = 32;

// Returns the request with a maximum queue wait and with one of the four
// priorities.
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
  OverloadSoak(const SoakStand& stand, SoakReport* report)
      : server_(stand.server),
        report_(*report),
        client_(stand.server.address()) {
    const v1::Model model = *client_.GetModel(kClassifier, kSoakTimeout);
    for (const auto& some :
         {GoodRequests(kClassifier, model, stand.jpeg),
          BadRequests(kClassifier, model, stand.jpeg),
          GoodDenseRequests(kDetector, kSegmenter, stand.jpeg),
          BadDenseRequests(kDetector, kSegmenter, stand.jpeg)}) {
      for (const SoakRequest& soak : some) {
        // Skips requests for which some images succeed and others fail. They
        // end with OK even if the server refuses the good images.
        if (soak.outcomes.size() > 1) continue;
        const int number = static_cast<int>(requests_.size());
        requests_.push_back(Impatient(soak, number));
      }
    }
  }

  // Returns how many requests per second the server completes if kConcurrency
  // requests are always in flight.
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
                Record(soak, Call(client_, request).status());
              },
              soak.request);
          ++ended;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return ended / absl::ToDoubleSeconds(absl::Now() - start);
  }

  // Sends `requests` requests at random times, on average `rate` per second.
  // Waits until all have ended.
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
      if (i % std::max(1, requests / 50) == 0) report_.SampleMemory(server_, i);
    }
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](int* in_flight) { return *in_flight == 0; }, &in_flight_));
  }

  // Compares the client's counts with the server's and checks the server's
  // memory.
  void Check(int requests, double least_refused) {
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
    if (ok == 0) report_.Complain("nothing was answered");
    if (refused < least_refused * requests) {
      report_.Complain("too few were refused for an overload");
    }
    report_.CheckMemory(requests);
  }

 private:
  const SoakRequest& Draw(std::mt19937* random) const {
    return requests_[(*random)() % requests_.size()];
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
      client_.Classify(*classify, kSoakTimeout,
                       Ends<v1::ClassifyResponse>(soak));
    } else if (auto* detect = std::get_if<v1::DetectRequest>(&soak.request)) {
      client_.Detect(*detect, kSoakTimeout, Ends<v1::DetectResponse>(soak));
    } else {
      client_.Segment(std::get<v1::SegmentRequest>(soak.request), kSoakTimeout,
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
      report_.Complain(
          absl::StrCat(soak.name, ": ", client::DescribeRpcError(status)));
    }
  }

  void CompareCounts(const std::string& model)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const int port = server_.metrics_port();
    const auto compare =
        [&](const Counts& own, const Counts& server)
            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
              std::cout << model << ":" << ToText(own) << "\n";
              if (own == server) return;
              report_.Complain(
                  absl::StrCat(model, ": the server counted", ToText(server)));
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
      report_.Complain(absl::StrCat(model, ": ", images_[model],
                                    " images, the server counted ", images));
    }
  }

  int InFlight() const {
    absl::MutexLock lock(&mu_);
    return in_flight_;
  }

  const ServerProcess& server_;
  SoakReport& report_;
  std::vector<SoakRequest> requests_;  // Not changed after construction.
  int not_sent_ = 0;

  mutable absl::Mutex mu_;
  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  // The following maps count by model.
  std::map<std::string, Counts> codes_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Counts> reasons_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int64_t> images_ ABSL_GUARDED_BY(mu_);

  // The last member, so that it is destroyed first. Its destructor waits for
  // the calls in flight, which use the other members.
  client::VisionClient client_;
};

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) {
  double overload = 2;
  sfmamba::client::FlagSet flags(
      "overload_soak [flags]",
      "Sends mixed requests to a server of its own, more than it can do, and\n"
      "checks answers, counters and memory.");
  flags.Add("overload", "X", "how many times what the server can do",
            &overload);
  return sfmamba::RunSoak(
      argc, argv, &flags,
      [&overload](const sfmamba::SoakStand& stand,
                  sfmamba::SoakReport* report) {
        sfmamba::OverloadSoak soak(stand, report);
        const double capacity = soak.Capacity(absl::Seconds(3));
        const absl::Time start = absl::Now();
        soak.Run(stand.requests, overload * capacity);
        std::cout << absl::StrFormat(
            "%d requests in %s, %.0f a second could be done\n", stand.requests,
            absl::FormatDuration(absl::Now() - start), capacity);
        soak.Check(stand.requests, overload >= 2 ? 0.1 : 0);
      });
}
