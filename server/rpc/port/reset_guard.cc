#include "server/rpc/port/reset_guard.h"

#include "base/steady_clock.h"
#include "grpcpp/server_context.h"
#include "server/rpc/call.h"

namespace sfmamba::rpc {
namespace {

// Most age of a call that misses its deadline and counts as reset: it was not
// begun for an answer.
constexpr absl::Duration kSoon = absl::Milliseconds(100);

class ResetInterceptor final : public grpc::experimental::Interceptor {
 public:
  ResetInterceptor(ResetGuard& guard, grpc::experimental::ServerRpcInfo& info)
      : guard_(guard), info_(info), begin_(base::SteadyNow()) {}

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::POST_RECV_CLOSE)) {
      const grpc::ServerContextBase& context = *info_.server_context();
      const absl::Time now = base::SteadyNow();
      guard_.Ended(
          context.peer(),
          EndOf(context.IsCancelled(), now - begin_, TimeLeft(context)), now);
    }
    methods->Proceed();
  }

 private:
  ResetGuard& guard_;
  grpc::experimental::ServerRpcInfo& info_;
  const absl::Time begin_;
};

}  // namespace

CallEnd EndOf(bool cancelled, absl::Duration lived, absl::Duration left) {
  if (!cancelled) return CallEnd::kAnswered;
  const bool expired = left <= absl::ZeroDuration() && lived > kSoon;
  return expired ? CallEnd::kExpired : CallEnd::kReset;
}

void ResetGuard::Ended(const std::string& peer, CallEnd how, absl::Time now) {
  if (how == CallEnd::kExpired) return;
  if (how == CallEnd::kAnswered && !any_.load()) return;
  {
    absl::MutexLock lock(&mu_);
    if (now - second_ >= absl::Seconds(1)) {
      second_ = now;
      resets_.clear();
    }
    if (how == CallEnd::kAnswered) {
      const auto found = resets_.find(peer);
      if (found != resets_.end() && found->second.surplus > 0) {
        --found->second.surplus;
      }
      any_ = !resets_.empty();
      return;
    }
    any_ = true;
    Resets& resets = resets_[peer];
    // Told once a second: those that were begun before go on ending.
    if (++resets.surplus <= kMostResets || resets.told) return;
    resets.told = true;
  }
  end_(peer);
}

grpc::experimental::Interceptor* ResetInterceptors::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  if (info->type() != grpc::experimental::ServerRpcInfo::Type::UNARY) {
    return nullptr;
  }
  return new ResetInterceptor(guard_, *info);
}

}  // namespace sfmamba::rpc
