#include "server/rpc/port/call_counts.h"

#include <utility>

#include "grpcpp/server_context.h"

namespace sfmamba::rpc {
namespace {

class CallInterceptor final : public grpc::experimental::Interceptor {
 public:
  CallInterceptor(CallCounts* counts, std::string peer)
      : counts_(*counts), peer_(std::move(peer)) {
    counts_.Came(peer_);
  }
  ~CallInterceptor() override { counts_.Gone(peer_); }

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    methods->Proceed();
  }

 private:
  CallCounts& counts_;
  const std::string peer_;
};

}  // namespace

void CallCounts::Came(const std::string& peer) {
  absl::MutexLock lock(&mu_);
  ++calls_[peer];
}

void CallCounts::Gone(const std::string& peer) {
  absl::MutexLock lock(&mu_);
  if (--calls_[peer] == 0) calls_.erase(peer);
}

int CallCounts::Of(const std::string& peer) const {
  absl::MutexLock lock(&mu_);
  const auto found = calls_.find(peer);
  return found == calls_.end() ? 0 : found->second;
}

grpc::experimental::Interceptor* CallInterceptors::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  return new CallInterceptor(&counts_, info->server_context()->peer());
}

}  // namespace sfmamba::rpc
