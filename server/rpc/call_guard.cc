#include "server/rpc/call_guard.h"

#include <utility>

namespace sfmamba::rpc {
namespace {

constexpr char kHeader[] = "authorization";

class RefusedStream final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit RefusedStream(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

std::string AuthorizationOf(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  if (metadata.count(kHeader) != 1) return "";
  const auto found = metadata.find(kHeader);
  return std::string(found->second.data(), found->second.size());
}

absl::StatusOr<security::Caller> CheckCaller(
    const security::Gate* gate, const grpc::ServerContextBase& context,
    security::Scope scope) {
  if (gate == nullptr) return security::Caller();
  return gate->Check(AuthorizationOf(context), context.peer(), scope);
}

absl::StatusOr<StreamRights> CheckStream(
    const security::Gate* gate, const grpc::ServerContextBase& context) {
  absl::StatusOr<security::Caller> caller =
      CheckCaller(gate, context, security::Scope::kInfer);
  if (!caller.ok()) return caller.status();
  StreamRights rights;
  rights.caller = *std::move(caller);
  if (gate != nullptr) {
    rights.allowed = [gate, peer = context.peer(),
                      authorization = AuthorizationOf(context)] {
      return gate->Check(authorization, peer, security::Scope::kInfer).status();
    };
  }
  return rights;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* RefuseStream(
    const grpc::Status& status) {
  return new RefusedStream(status);
}

}  // namespace sfmamba::rpc
