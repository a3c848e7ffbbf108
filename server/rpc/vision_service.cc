#include "server/rpc/vision_service.h"

#include <memory>
#include <utility>

#include "server/errors/reasons.h"
#include "server/observability/request_record.h"
#include "server/rpc/call.h"
#include "server/rpc/call_guard.h"
#include "server/rpc/describe_model.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/predict_call.h"
#include "server/rpc/stream/predict_stream.h"

namespace sfmamba::rpc {

VisionService::VisionService(prediction::TransportEnvironment environment,
                             absl::Duration send_timeout)
    : env_(std::move(environment)), sends_(send_timeout, env_.clock) {}

void VisionService::StartDraining() {
  draining_.store(true);
  streams_.Tick(true);
}

void VisionService::EndUnreadCalls() {
  streams_.Tick(draining_.load());
  const int calls = sends_.CancelLate();
  if (calls == 0) return;
  env_.log.Warning(observability::LogModule::kRequests,
                   "answers were not read: their calls are ended",
                   {{"calls", calls}});
}

absl::Status VisionService::CheckServing() const {
  return draining_.load() ? server::Draining("the server") : absl::OkStatus();
}

observability::RequestRecord VisionService::Record(
    observability::Method method, int64_t message_bytes,
    const grpc::CallbackServerContext& context) const {
  return observability::RequestRecord(method, message_bytes, context.peer(),
                                      TraceparentOf(context), &env_.metrics,
                                      &env_.log);
}

absl::Status VisionService::CheckReader(
    const grpc::CallbackServerContext& context,
    observability::RequestRecord* record) const {
  const auto caller = CheckCaller(env_.gate, context, security::Scope::kRead);
  if (!caller.ok()) return caller.status();
  record->set_client(caller->name);
  return CheckServing();
}

grpc::Status VisionService::Refuse(observability::Method method,
                                   int64_t message_bytes,
                                   const absl::Status& status,
                                   grpc::CallbackServerContext* context) const {
  auto record = Record(method, message_bytes, *context);
  record.set_no_model();
  return EndCall(record.Finish(status), context);
}

template <typename Call>
grpc::ServerUnaryReactor* VisionService::Predict(
    observability::Method method, grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  if (!request->Valid()) {
    // The caller has cancelled before its message came: there is no request.
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::CANCELLED);
    return reactor;
  }
  env_.message_came(context->peer(), request->Length());
  auto caller = CheckCaller(env_.gate, *context, security::Scope::kInfer);
  if (!caller.ok()) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(
        Refuse(method, request->Length(), caller.status(), context));
    return reactor;
  }
  // gRPC made the request for this call and does not read it again; nothing
  // else would free it before the call ends.
  auto* call =
      new Call(method, env_, context, *std::move(caller),
               const_cast<grpc::ByteBuffer*>(request), response, &sends_);
  call->Run(CheckServing());
  return call;
}

grpc::ServerUnaryReactor* VisionService::Classify(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Predict<ClassifyCall>(observability::Method::kClassify, context,
                               request, response);
}

grpc::ServerUnaryReactor* VisionService::Detect(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Predict<DetectCall>(observability::Method::kDetect, context, request,
                             response);
}

grpc::ServerUnaryReactor* VisionService::Segment(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Predict<SegmentCall>(observability::Method::kSegment, context, request,
                              response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
VisionService::StreamPredict(grpc::CallbackServerContext* context) {
  auto rights = CheckStream(env_.gate, *context);
  if (!rights.ok()) {
    return RefuseStream(Refuse(observability::Method::kStreamPredict, 0,
                               rights.status(), context));
  }
  return streams_.Start(std::make_shared<PredictStream>(
      env_, context, &sends_, *std::move(rights),
      [this] { return CheckServing(); }));
}

grpc::ServerUnaryReactor* VisionService::GetModel(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  auto record =
      Record(observability::Method::kGetModel, request->Length(), *context);
  v1::GetModelRequest asked;
  v1::Model model;
  absl::Status status = CheckReader(*context, &record);
  if (status.ok()) status = Parse(*request, &asked);
  if (status.ok()) {
    const auto version = env_.repository.Find(asked.name(), "name");
    status = version.status();
    if (status.ok()) {
      record.set_model((*version)->name(), (*version)->metrics());
      ToProto(**version, /*with_classes=*/true, &model);
      Serialize(model, response);
    }
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(EndCall(record.Finish(status), context));
  return reactor;
}

grpc::ServerUnaryReactor* VisionService::ListModels(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  auto record =
      Record(observability::Method::kListModels, request->Length(), *context);
  record.set_no_model();
  v1::ListModelsRequest asked;
  v1::ListModelsResponse page;
  absl::Status status = CheckReader(*context, &record);
  if (status.ok()) status = Parse(*request, &asked);
  if (status.ok()) status = FillPage(asked, env_.repository.List(), &page);
  if (status.ok()) Serialize(page, response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(EndCall(record.Finish(status), context));
  return reactor;
}

}  // namespace sfmamba::rpc
