#include "client/bench/load_generator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/bench/unavailable_pause.h"
#include "client/commands/predict.h"

namespace sfmamba::client {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);

// A single run of a load. Sends on its own threads and receives answers on
// gRPC's threads. All times are counted from the start of the run.
class LoadRun {
 public:
  LoadRun(const std::vector<std::unique_ptr<VisionClient>>& clients,
          const Load& load, const LoadOptions& options)
      : clients_(clients),
        load_(load),
        options_(options),
        end_(options.warmup + options.duration),
        sending_(options.threads),
        tally_(load.class_names, options.warmup, end_) {}

  LoadReport Run(const std::function<void(double)>& on_progress)
      ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<std::thread> threads;
    for (int i = 0; i < options_.threads; ++i) {
      threads.emplace_back([this, i] {
        load_.arrivals.empty() ? SendInTurn() : SendArrivals(i);
        absl::MutexLock lock(&mu_);
        --sending_;
      });
    }
    while (!WaitForEnd(kProgressInterval)) on_progress(Progress());
    for (std::thread& thread : threads) thread.join();
    absl::MutexLock lock(&mu_);
    return tally_.Report(options_.duration == absl::InfiniteDuration());
  }

 private:
  // Sends every request that belongs to thread `thread`, at the request's due
  // time.
  void SendArrivals(int thread) ABSL_LOCKS_EXCLUDED(mu_) {
    for (size_t i = thread; i < load_.arrivals.size(); i += options_.threads) {
      const Trace::Arrival& arrival = load_.arrivals[i];
      const LoadRequest& request = load_.requests[arrival.request];
      absl::SleepFor(arrival.at - Now());
      const absl::Duration now = Now();
      if (MaySend(request, arrival.at, now)) Send(i, request, arrival.at, now);
    }
  }

  // Returns true if a request that was due at `due` may be sent now. In this
  // case, counts the request as in flight. Otherwise counts it as not sent.
  bool MaySend(const LoadRequest& request, absl::Duration due,
               absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (now - due >= request.deadline) {
      tally_.CountMissed(request.class_index, due);
      return false;
    }
    if (in_flight_ >= options_.max_in_flight) {
      tally_.CountOverCap(request.class_index, due);
      return false;
    }
    tally_.CountInFlight(++in_flight_);
    return true;
  }

  void SendInTurn() ABSL_LOCKS_EXCLUDED(mu_) {
    while (const absl::optional<Turn> turn = TakeTurn()) {
      Send(turn->number, load_.requests[turn->number % load_.requests.size()],
           turn->at, turn->at);
    }
  }

  // The permission to send one more request in a closed loop.
  struct Turn {
    size_t number;      // Counts the requests of this run, from 0.
    absl::Duration at;  // When the request is due.
  };

  // Waits until fewer than `concurrency` requests are in flight and there is no
  // pause. Then counts one more request as in flight and returns its Turn.
  // Returns nullopt if the run is over.
  absl::optional<Turn> TakeTurn() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    AwaitTurn();
    const absl::Duration now = Now();
    if (now >= end_) return absl::nullopt;
    if (now >= options_.warmup) {
      if (options_.requests > 0 && measured_ == options_.requests) {
        return absl::nullopt;
      }
      ++measured_;
    }
    tally_.CountInFlight(++in_flight_);
    return Turn{next_turn_++, now};
  }

  void AwaitTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto has_room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return in_flight_ < options_.concurrency;
    };
    mu_.Await(absl::Condition(&has_room));
    while (Now() < std::min(pause_.until(), end_)) {
      const absl::Duration until = pause_.until();
      const auto has_changed = [this, until]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
        return pause_.until() != until;
      };
      mu_.AwaitWithTimeout(absl::Condition(&has_changed),
                           std::min(until, end_) - Now());
      mu_.Await(absl::Condition(&has_room));
    }
  }

  void Send(size_t number, const LoadRequest& request, absl::Duration due,
            absl::Duration now) {
    VisionClient& client = *clients_[number % clients_.size()];
    absl::visit(
        [&](const auto& message) {
          Predict(client, message, request.deadline - (now - due),
                  [this, &request, due, now](const auto& response) {
                    CountAnswer(request, due, now, response);
                  });
        },
        request.message);
  }

  template <typename Response>
  void CountAnswer(const LoadRequest& request, absl::Duration due,
                   absl::Duration sent,
                   const absl::StatusOr<Response>& response)
      ABSL_LOCKS_EXCLUDED(mu_) {
    SentRequest answered;
    answered.class_index = request.class_index;
    answered.due = due;
    answered.sent = sent;
    answered.received = Now();
    answered.deadline = request.deadline;
    answered.status = response.status();
    if (response.ok()) {
      answered.images = response->results_size();
      if (response->has_timing()) answered.timing = &response->timing();
    }
    absl::MutexLock lock(&mu_);
    tally_.CountSent(answered);
    pause_.Answered(absl::IsUnavailable(answered.status), answered.sent,
                    answered.received);
    --in_flight_;
  }

  // Waits for the last answer. Returns false if it has not arrived after
  // `limit`.
  bool WaitForEnd(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return sending_ == 0 && in_flight_ == 0;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&ended), limit);
  }

  double Progress() ABSL_LOCKS_EXCLUDED(mu_) {
    if (end_ < absl::InfiniteDuration()) {
      return absl::FDivDuration(Now(), end_);
    }
    if (!load_.arrivals.empty()) {
      return absl::FDivDuration(Now(), load_.arrivals.back().at);
    }
    absl::MutexLock lock(&mu_);
    return static_cast<double>(measured_) / options_.requests;
  }

  absl::Duration Now() const {
    return absl::FromChrono(std::chrono::steady_clock::now() - start_);
  }

  const std::vector<std::unique_ptr<VisionClient>>& clients_;
  const Load& load_;
  const LoadOptions options_;
  const absl::Duration end_;
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();

  absl::Mutex mu_;
  int sending_ ABSL_GUARDED_BY(mu_);  // Threads that still send.
  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  UnavailablePause pause_ ABSL_GUARDED_BY(mu_);  // Used by closed loops only.
  size_t next_turn_ ABSL_GUARDED_BY(mu_) = 0;
  // The number of requests that a closed loop has sent after the warm-up.
  int measured_ ABSL_GUARDED_BY(mu_) = 0;
  LoadTally tally_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

LoadReport GenerateLoad(
    const std::vector<std::unique_ptr<VisionClient>>& clients, const Load& load,
    const LoadOptions& options,
    const std::function<void(double)>& on_progress) {
  return LoadRun(clients, load, options).Run(on_progress);
}

}  // namespace sfmamba::client
