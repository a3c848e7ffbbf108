#include "server/rpc/call.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/base/reasons.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {
namespace {

constexpr size_t kMaxPlainRequestBytes = 256 << 10;

}  // namespace

prediction::PredictionRequest WithCall(
    const grpc::CallbackServerContext& context, observability::Method method,
    prediction::PredictionRequest request) {
  request.method = method;
  request.peer = context.peer();
  request.traceparent = TraceparentOf(context);
  if (context.deadline() != std::chrono::system_clock::time_point::max()) {
    request.deadline = absl::FromChrono(context.deadline());
  }
  return request;
}

absl::Status CheckPlainRequest(const grpc::ByteBuffer& bytes) {
  if (bytes.Length() <= kMaxPlainRequestBytes) return absl::OkStatus();
  return server::MalformedMessage(
      absl::StrCat("got a message of ", bytes.Length(),
                   " bytes, expected at most ", kMaxPlainRequestBytes));
}

}  // namespace sfmamba::rpc
