#include "server/rpc/raw_service.h"

#include "absl/strings/str_cat.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "server/errors/reasons.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::internal::RpcMethod;

Reactor* End(const RawCall& call, const grpc::Status& status) {
  Reactor* reactor = call.context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

void RawService::AddUnary(const char* name,
                          std::function<Reactor*(const RawCall&)> handle) {
  AddHandler(name, RpcMethod::NORMAL_RPC,
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
  AddHandler(name, RpcMethod::BIDI_STREAMING,
             new grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>(
                 std::move(open)));
}

void RawService::AddHandler(const char* name, RpcMethod::RpcType type,
                            grpc::internal::MethodHandler* handler) {
  const int index = static_cast<int>(paths_.size());
  paths_.push_back(absl::StrCat("/", name_, "/", name));
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
                                      TraceparentOf(context), &metrics_, &log_);
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
