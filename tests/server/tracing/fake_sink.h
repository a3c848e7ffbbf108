#ifndef SFMAMBA_TESTS_SERVER_TRACING_FAKE_SINK_H_
#define SFMAMBA_TESTS_SERVER_TRACING_FAKE_SINK_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/tracing/span_exporter.h"

namespace sfmamba::tracing {

// What a FakeSink does and what it was given. Thread-safe.
struct SinkState {
  absl::Mutex mu;
  std::vector<std::string> requests;  // All attempts.
  // Returned by the next attempts, the last of them by all that follow.
  std::vector<absl::Status> answers = {absl::OkStatus()};
  bool hangs = false;  // Until it is stopped.

  size_t attempts() {
    absl::MutexLock lock(&mu);
    return requests.size();
  }
  bool AwaitAttempts(size_t count, absl::Duration limit) {
    const auto come = [this, count] { return requests.size() >= count; };
    absl::MutexLock lock(&mu);
    return mu.AwaitWithTimeout(absl::Condition(&come), limit);
  }
};

class FakeSink final : public SpanSink {
 public:
  explicit FakeSink(std::shared_ptr<SinkState> state)
      : state_(std::move(state)) {}

  absl::Status Write(const std::string& request,
                     absl::FunctionRef<bool()> stop) override {
    absl::Status answer;
    bool hangs;
    {
      absl::MutexLock lock(&state_->mu);
      hangs = state_->hangs;
      const size_t i =
          std::min(state_->requests.size(), state_->answers.size() - 1);
      answer = state_->answers[i];
      state_->requests.push_back(request);
    }
    while (hangs && !stop()) absl::SleepFor(absl::Milliseconds(1));
    return hangs ? absl::CancelledError("stopped") : answer;
  }

 private:
  const std::shared_ptr<SinkState> state_;
};

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_TESTS_SERVER_TRACING_FAKE_SINK_H_
