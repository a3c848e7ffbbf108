#include "server/rpc/reset_guard.h"

#include "base/steady_clock.h"
#include "grpcpp/server_context.h"

namespace sfmamba::rpc {
namespace {

// A call that is cancelled so soon was not begun for its answer.
// Under load a call waits that long for its handler.
constexpr absl::Duration kSoon = absl::Milliseconds(100);

class ResetInterceptor final : public grpc::experimental::Interceptor {
 public:
  ResetInterceptor(ResetGuard& guard, grpc::experimental::ServerRpcInfo& info)
      : guard_(guard), info_(info), begin_(base::SteadyNow()) {}

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::POST_RECV_CLOSE) &&
        info_.server_context()->IsCancelled()) {
      const absl::Time now = base::SteadyNow();
      guard_.Cancelled(info_.server_context()->peer(), now - begin_, now);
    }
    methods->Proceed();
  }

 private:
  ResetGuard& guard_;
  grpc::experimental::ServerRpcInfo& info_;
  const absl::Time begin_;
};

}  // namespace

void ResetGuard::Cancelled(const std::string& peer, absl::Duration lived,
                           absl::Time now) {
  if (lived > kSoon) return;
  {
    absl::MutexLock lock(&mu_);
    if (now - second_ >= absl::Seconds(1)) {
      second_ = now;
      resets_.clear();
    }
    // Told once a second: those that were begun before go on ending.
    if (++resets_[peer] != kMostResets + 1) return;
  }
  end_(peer);
}

grpc::experimental::Interceptor* ResetInterceptors::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  // gRPC's reflection is a stream of the synchronous API, in which
  // IsCancelled() may not be called here. No unary method is.
  if (info->type() != grpc::experimental::ServerRpcInfo::Type::UNARY) {
    return nullptr;
  }
  return new ResetInterceptor(guard_, *info);
}

}  // namespace sfmamba::rpc
