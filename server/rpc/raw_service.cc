#include "server/rpc/raw_service.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "server/errors/reasons.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::internal::RpcMethod;

absl::StatusOr<std::string> AdministratorOf(
    const security::Gate* gate, const grpc::CallbackServerContext& context) {
  const auto caller = CheckCaller(gate, context, security::Scope::kAdmin);
  if (!caller.ok()) return caller.status();
  return admin::WhoIs(*caller, context.peer());
}

std::shared_ptr<ChangeCall> ChangeCall::New(observability::Method method,
                                            const RawCall& call,
                                            observability::Metrics* metrics,
                                            observability::Logger* log) {
  std::shared_ptr<ChangeCall> made =
      absl::WrapUnique(new ChangeCall(call.context));
  made->record_.emplace(method, call.request->Length(), call.context->peer(),
                        OnlyHeader(*call.context, "traceparent"), metrics, log);
  made->record_->set_no_model();
  made->self_ = made;
  return made;
}

void ChangeCall::End(const absl::Status& status,
                     absl::FunctionRef<void()> write) {
  if (ended_.exchange(true)) return;
  if (status.ok()) write();
  Finish(EndCall(record_->Finish(status), context_));
}

void ChangeCall::OnCancel() { End(server::Cancelled("administration")); }

void ChangeCall::OnDone() {
  record_.reset();  // The request is in flight no more.
  const std::shared_ptr<ChangeCall> self = std::move(self_);
}

Reactor* End(const RawCall& call, const grpc::Status& status) {
  Reactor* reactor = call.context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

void RawService::Add(const char* name,
                     std::function<Reactor*(const RawCall&)> handle) {
  AddPath(absl::StrCat("/", name_, "/", name), std::move(handle));
}

void RawService::AddPath(std::string path,
                         std::function<Reactor*(const RawCall&)> handle) {
  AddHandler(std::move(path), RpcMethod::NORMAL_RPC,
             new grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>(
                 [handle = std::move(handle)](CallbackServerContext* context,
                                              const ByteBuffer* request,
                                              ByteBuffer* response) {
                   return handle({context, request, response});
                 }));
}

void RawService::AddStream(
    const char* name,
    std::function<StreamReactor*(CallbackServerContext*)> open) {
  AddStreamPath(absl::StrCat("/", name_, "/", name), std::move(open));
}

void RawService::AddStreamPath(
    std::string path,
    std::function<StreamReactor*(CallbackServerContext*)> open) {
  AddHandler(std::move(path), RpcMethod::BIDI_STREAMING,
             new grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>(
                 std::move(open)));
}

void RawService::AddHandler(std::string path, RpcMethod::RpcType type,
                            grpc::internal::MethodHandler* handler) {
  const int index = static_cast<int>(paths_.size());
  paths_.push_back(std::move(path));
  AddMethod(new grpc::internal::RpcServiceMethod(paths_.back().c_str(), type,
                                                 nullptr));
  MarkMethodRawCallback(index, handler);
}

absl::Status RawService::CheckServing() const {
  return draining_.load() ? server::Draining("the server") : absl::OkStatus();
}

observability::RequestRecord RawService::Record(
    observability::Method method, int64_t message_bytes,
    const CallbackServerContext& context) const {
  return observability::RequestRecord(method, message_bytes, context.peer(),
                                      OnlyHeader(context, "traceparent"),
                                      &metrics_, &log_);
}

grpc::Status RawService::Refuse(observability::Method method,
                                int64_t message_bytes,
                                const absl::Status& status,
                                CallbackServerContext* context) const {
  auto record = Record(method, message_bytes, *context);
  record.set_no_model();
  return EndCall(record.Finish(status), context);
}

}  // namespace sfmamba::rpc
