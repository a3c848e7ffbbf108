#include "server/rpc/prediction_service.h"

#include <memory>
#include <utility>

namespace sfmamba::rpc {

PredictionService::PredictionService(
    const char* name, prediction::TransportEnvironment environment,
    absl::Duration send_timeout)
    : RawService(name, &environment.metrics, &environment.log),
      env_(std::move(environment)),
      sends_(send_timeout, env_.clock) {}

void PredictionService::StartDraining() {
  RawService::StartDraining();
  streams_.Tick(true);
}

void PredictionService::EndUnreadCalls() {
  streams_.Tick(!CheckServing().ok());
  const int calls = sends_.CancelLate();
  if (calls == 0) return;
  env_.log.Warning(observability::LogModule::kRequests,
                   "answers were not read: their calls are ended",
                   {{"calls", calls}});
}

absl::Status PredictionService::CheckScope(
    const RawCall& call, security::Scope scope,
    observability::RequestRecord* record) const {
  const auto caller = CheckCaller(env_.gate, *call.context, scope);
  if (caller.ok()) record->set_client(caller->name);
  return caller.status();
}

absl::Status PredictionService::CheckReader(
    const RawCall& call, observability::RequestRecord* record) const {
  return CheckScope(call, security::Scope::kRead, record);
}

Reactor* PredictionService::Admit(
    observability::Method method, const RawCall& call,
    absl::FunctionRef<Reactor*(security::Caller, grpc::ByteBuffer*)> start)
    const {
  if (!call.request->Valid()) {
    // The caller has cancelled before its message came: there is no request.
    return End(call, grpc::Status::CANCELLED);
  }
  auto caller = CheckCaller(env_.gate, *call.context, security::Scope::kInfer);
  if (!caller.ok()) {
    return End(call, Refuse(method, call.request->Length(), caller.status(),
                            call.context));
  }
  // gRPC made the request for this call and does not read it again; nothing
  // else would free it before the call ends.
  return start(*std::move(caller), const_cast<grpc::ByteBuffer*>(call.request));
}

StreamReactor* PredictionService::Open(grpc::CallbackServerContext* context,
                                       StreamCall::Options options,
                                       StreamCall::Take take,
                                       security::Scope scope) {
  auto rights = CheckStream(env_.gate, *context, scope);
  if (!rights.ok()) {
    return new Refused<StreamReactor>(
        Refuse(options.method, 0, rights.status(), context));
  }
  options.serving = [this] { return CheckServing(); };
  options.rights = *std::move(rights);
  return streams_.Start(std::make_shared<StreamCall>(
      env_, context, &sends_, std::move(options), std::move(take)));
}

}  // namespace sfmamba::rpc
