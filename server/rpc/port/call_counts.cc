#include "server/rpc/port/call_counts.h"

#include <utility>

#include "base/steady_clock.h"
#include "grpcpp/server_context.h"
#include "server/rpc/call.h"

namespace sfmamba::rpc {
namespace {

// Most age of a call that misses its deadline and counts as reset: it was not
// begun for an answer.
constexpr absl::Duration kSoon = absl::Milliseconds(100);

class CallInterceptor final : public grpc::experimental::Interceptor {
 public:
  CallInterceptor(CallCounts* counts, grpc::experimental::ServerRpcInfo* info)
      : counts_(*counts),
        context_(*info->server_context()),
        peer_(context_.peer()),
        begin_(base::SteadyNow()) {}
  ~CallInterceptor() override {
    if (has_message_) counts_.Gone(peer_);
  }

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::POST_RECV_MESSAGE) &&
        !std::exchange(has_message_, true)) {
      counts_.MessageCame(peer_);
    }
    if (methods->QueryInterceptionHookPoint(Point::POST_RECV_CLOSE)) {
      const absl::Time now = base::SteadyNow();
      counts_.Ended(
          peer_,
          EndOf(context_.IsCancelled(), now - begin_, TimeLeft(context_)), now);
    }
    methods->Proceed();
  }

 private:
  CallCounts& counts_;
  const grpc::ServerContextBase& context_;
  const std::string peer_;
  const absl::Time begin_;
  // Set by its first read, before which no other is begun.
  bool has_message_ = false;
};

}  // namespace

CallEnd EndOf(bool cancelled, absl::Duration lived, absl::Duration left) {
  if (!cancelled) return CallEnd::kAnswered;
  const bool expired = left <= absl::ZeroDuration() && lived > kSoon;
  return expired ? CallEnd::kExpired : CallEnd::kReset;
}

void CallCounts::MessageCame(const std::string& peer) {
  absl::MutexLock lock(&mu_);
  ++calls_[peer].with_message;
}

void CallCounts::Gone(const std::string& peer) {
  absl::MutexLock lock(&mu_);
  --calls_[peer].with_message;
}

void CallCounts::Ended(const std::string& peer, CallEnd how, absl::Time now) {
  {
    absl::MutexLock lock(&mu_);
    if (now - second_ >= absl::Seconds(1)) {
      second_ = now;
      absl::erase_if(calls_,
                     [](const auto& c) { return c.second.with_message == 0; });
      for (auto& [other, calls] : calls_) calls = {calls.with_message};
    }
    Calls& calls = calls_[peer];
    if (how == CallEnd::kAnswered && calls.resets > 0) --calls.resets;
    if (how != CallEnd::kReset) return;
    // Told once a second: those that were begun before go on ending.
    if (++calls.resets <= kMostResets || calls.is_ended) return;
    calls.is_ended = true;
  }
  end_(peer);
}

int CallCounts::WithMessage(const std::string& peer) const {
  absl::MutexLock lock(&mu_);
  const auto found = calls_.find(peer);
  return found == calls_.end() ? 0 : found->second.with_message;
}

grpc::experimental::Interceptor* CallInterceptors::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  return new CallInterceptor(&counts_, info);
}

}  // namespace sfmamba::rpc
