#include "server/rpc/send_watch.h"

#include <utility>

namespace sfmamba::rpc {

SendWatch::SendWatch(absl::Duration timeout, std::function<absl::Time()> clock)
    : timeout_(timeout), clock_(std::move(clock)) {}

void SendWatch::Sending(grpc::CallbackServerContext* context) {
  const absl::Time end = clock_() + timeout_;
  absl::MutexLock lock(&mu_);
  sending_[context] = end;
}

void SendWatch::Done(grpc::CallbackServerContext* context) {
  absl::MutexLock lock(&mu_);
  sending_.erase(context);
}

int SendWatch::CancelLate() {
  const absl::Time now = clock_();
  int cancelled = 0;
  // gRPC destroys a context only after Done(), and Done() needs this mutex. The
  // mutex therefore keeps each context alive during TryCancel(). TryCancel()
  // can cause a call of Done(). gRPC makes this call on one of its own threads
  // and never on this thread. This thread therefore does not lock the mutex a
  // second time, and there is no deadlock.
  absl::MutexLock lock(&mu_);
  for (auto& [context, end] : sending_) {
    if (now < end) continue;
    end = absl::InfiniteFuture();
    context->TryCancel();
    ++cancelled;
  }
  return cancelled;
}

}  // namespace sfmamba::rpc
