#include "server/rpc/heard_peers.h"

#include <utility>

#include "grpcpp/server_context.h"

namespace sfmamba::rpc {
namespace {

class MessageInterceptor final : public grpc::experimental::Interceptor {
 public:
  MessageInterceptor(HeardPeers& heard, grpc::experimental::ServerRpcInfo& info)
      : heard_(heard), info_(info) {}

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::POST_RECV_MESSAGE)) {
      heard_.Add(info_.server_context()->peer());
    }
    methods->Proceed();
  }

 private:
  HeardPeers& heard_;
  grpc::experimental::ServerRpcInfo& info_;
};

}  // namespace

void HeardPeers::Add(std::string peer) {
  absl::MutexLock lock(&mu_);
  peers_.insert(std::move(peer));
}

HeardPeers::Set HeardPeers::Take() {
  Set peers;
  absl::MutexLock lock(&mu_);
  peers.swap(peers_);
  return peers;
}

grpc::experimental::Interceptor* MessageInterceptors::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  return new MessageInterceptor(heard_, *info);
}

}  // namespace sfmamba::rpc
