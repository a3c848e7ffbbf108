#include "server/rpc/call.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {
namespace {

constexpr size_t kMaxPlainRequestBytes = 256 << 10;

}  // namespace

CallInfo InfoOf(const grpc::CallbackServerContext& context) {
  CallInfo call;
  call.peer = context.peer();
  call.traceparent = TraceparentOf(context);
  if (context.deadline() != std::chrono::system_clock::time_point::max()) {
    call.deadline = absl::FromChrono(context.deadline());
  }
  return call;
}

prediction::PredictionRequest WithCall(CallInfo call,
                                       observability::Method method,
                                       prediction::PredictionRequest request) {
  request.method = method;
  request.peer = std::move(call.peer);
  request.traceparent = std::move(call.traceparent);
  request.deadline = call.deadline;
  return request;
}

absl::Status CheckPlainRequest(const grpc::ByteBuffer& bytes) {
  if (bytes.Length() <= kMaxPlainRequestBytes) return absl::OkStatus();
  return server::MalformedMessage(
      absl::StrCat("got a message of ", bytes.Length(),
                   " bytes, expected at most ", kMaxPlainRequestBytes));
}

}  // namespace sfmamba::rpc
