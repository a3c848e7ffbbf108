#include "server/rpc/port/call_counts.h"

#include <utility>

#include "grpcpp/server_context.h"

namespace sfmamba::rpc {
namespace {

class CallInterceptor final : public grpc::experimental::Interceptor {
 public:
  CallInterceptor(CallCounts* counts, std::string peer)
      : counts_(*counts), peer_(std::move(peer)) {}
  ~CallInterceptor() override {
    if (has_message_) counts_.Gone(peer_);
  }

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::POST_RECV_MESSAGE) &&
        !std::exchange(has_message_, true)) {
      counts_.MessageCame(peer_);
    }
    methods->Proceed();
  }

 private:
  CallCounts& counts_;
  const std::string peer_;
  // Set by the call's first read, before which no other is begun.
  bool has_message_ = false;
};

}  // namespace

void CallCounts::MessageCame(const std::string& peer) {
  absl::MutexLock lock(&mu_);
  ++with_message_[peer];
}

void CallCounts::Gone(const std::string& peer) {
  absl::MutexLock lock(&mu_);
  if (--with_message_[peer] == 0) with_message_.erase(peer);
}

int CallCounts::WithMessage(const std::string& peer) const {
  absl::MutexLock lock(&mu_);
  const auto found = with_message_.find(peer);
  return found == with_message_.end() ? 0 : found->second;
}

grpc::experimental::Interceptor* CallInterceptors::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  return new CallInterceptor(&counts_, info->server_context()->peer());
}

}  // namespace sfmamba::rpc
