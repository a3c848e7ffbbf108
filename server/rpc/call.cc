#include "server/rpc/call.h"

#include <time.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "grpcpp/support/slice.h"
#include "server/errors/reasons.h"
#include "server/rpc/grpc_status.h"
#include "server/shares/client_shares.h"

namespace sfmamba::rpc {
namespace {

constexpr size_t kMaxPlainRequestBytes = 256 << 10;

std::string TracestateOf(const grpc::CallbackServerContext& context) {
  std::string joined;
  const auto range = context.client_metadata().equal_range("tracestate");
  for (auto found = range.first; found != range.second; ++found) {
    const absl::string_view value(found->second.data(), found->second.size());
    absl::StrAppend(&joined, joined.empty() ? "" : ",", value);
  }
  return joined;
}

security::Gate::Origin OriginOf(const grpc::ServerContextBase& context) {
  security::Gate::Origin origin = {context.peer(), {}};
  const auto range = context.client_metadata().equal_range("x-forwarded-for");
  for (auto found = range.first; found != range.second; ++found) {
    origin.forwarded.emplace_back(found->second.data(), found->second.size());
  }
  return origin;
}

}  // namespace

std::string ClientOf(const security::Gate* gate,
                     const grpc::ServerContextBase& context) {
  return gate == nullptr ? std::string(server::ClientOf(context.peer()))
                         : gate->ClientOf(OriginOf(context));
}

absl::Duration TimeLeft(const grpc::ServerContextBase& context) {
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_clock_type clock = deadline.clock_type;
  if (gpr_time_cmp(deadline, gpr_inf_future(clock)) == 0) {
    return absl::InfiniteDuration();
  }
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(clock));
  return absl::DurationFromTimespec({left.tv_sec, left.tv_nsec});
}

CallInfo InfoOf(const grpc::CallbackServerContext& context,
                security::Caller caller) {
  CallInfo call;
  call.caller = std::move(caller);
  call.peer = context.peer();
  call.traceparent = OnlyHeader(context, "traceparent");
  call.tracestate = TracestateOf(context);
  call.deadline = base::SteadyNow() + TimeLeft(context);
  return call;
}

std::string AuthorizationOf(const grpc::ServerContextBase& context) {
  return OnlyHeader(context, "authorization");
}

absl::StatusOr<security::Caller> CheckCaller(
    const security::Gate* gate, const grpc::ServerContextBase& context,
    security::Scope scope) {
  if (gate == nullptr) return security::Caller();
  return gate->Check(AuthorizationOf(context), OriginOf(context), scope);
}

absl::StatusOr<StreamRights> CheckStream(const security::Gate* gate,
                                         const grpc::ServerContextBase& context,
                                         security::Scope scope) {
  absl::StatusOr<security::Caller> caller = CheckCaller(gate, context, scope);
  if (!caller.ok()) return caller.status();
  StreamRights rights;
  rights.caller = *std::move(caller);
  if (gate != nullptr) {
    rights.allowed = [gate, scope, origin = OriginOf(context),
                      authorization = AuthorizationOf(context)] {
      return gate->Check(authorization, origin, scope).status();
    };
  }
  return rights;
}

absl::Status CheckPlainRequest(const grpc::ByteBuffer& bytes) {
  if (bytes.Length() <= kMaxPlainRequestBytes) return absl::OkStatus();
  return server::MalformedMessage(
      absl::StrCat("got a message of ", bytes.Length(),
                   " bytes, expected at most ", kMaxPlainRequestBytes));
}

void SetPieces(std::vector<std::string> pieces, grpc::ByteBuffer* bytes) {
  std::vector<grpc::Slice> slices;
  for (std::string& piece : pieces) {
    auto* const kept = new std::string(std::move(piece));
    slices.emplace_back(
        &(*kept)[0], kept->size(),
        [](void* data) { delete static_cast<std::string*>(data); }, kept);
  }
  *bytes = grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace sfmamba::rpc
