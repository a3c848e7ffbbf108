#include "server/rpc/method_service.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/call/call.h"
#include "server/call/encoded_results.h"
#include "server/errors/reasons.h"
#include "server/observability/log.h"
#include "server/observability/request_record.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/load_reports.h"
#include "server/rpc/stream/infer_stream.h"
#include "server/rpc/stream/predict_stream.h"
#include "server/rpc/wire/received_request.h"
#include "server/security/caller.h"

namespace sfmamba::rpc {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::internal::RpcMethod;

// The gRPC reactor of a unary call. Deletes itself after the response is sent.
struct GrpcReply final : UnaryCall {
  using UnaryCall::Send;
  using UnaryCall::UnaryCall;
  ~GrpcReply() override {
    if (sent) sent();
  }
  void OnCancel() override {
    if (cancelled) cancelled();
  }

  absl::AnyInvocable<void()> cancelled, sent;
};

class GrpcCall final : public call::Call {
 public:
  GrpcCall(const prediction::TransportEnvironment& environment,
           const RawCall& raw, GrpcReply* reply)
      : env_(environment),
        raw_(raw),
        request_bytes_(raw.request->Length()),
        reply_(reply) {
    info_ = InfoOf(*raw.context, security::Caller());
  }
  ~GrpcCall() override {
    if (reply_ == nullptr) return;
    Finish(absl::InternalError("the call was not answered"), nullptr, [] {});
  }

  int64_t request_bytes() const override { return request_bytes_; }
  absl::Status Admit(security::Scope scope) override {
    auto caller = CheckCaller(env_.gate, *raw_.context, scope);
    if (!caller.ok()) return caller.status();
    info_.caller = *std::move(caller);
    reports_load_ = scope == security::Scope::kInfer && env_.load_report;
    return absl::OkStatus();
  }
  absl::Status Read(call::Message* request) override {
    return Parse(*raw_.request, request);
  }
  std::unique_ptr<call::Pictures> ReadPictures(
      int max_images, call::Message* request) override {
    // gRPC created the request for this call and never reads it again, but
    // would keep it until the call ends. ReadPictures() therefore empties the
    // request.
    return rpc::ReadPictures(const_cast<grpc::ByteBuffer*>(raw_.request),
                             max_images, request);
  }
  void OnCancel(absl::AnyInvocable<void()> cancelled) override {
    reply_->cancelled = std::move(cancelled);
  }
  call::ResultSink& results() override { return results_; }
  void Finish(const absl::Status& status, call::Message* rest,
              absl::AnyInvocable<void()> sent) override {
    if (status.ok()) SetPieces(results_.Take(*rest), raw_.response);
    if (reports_load_) {
      raw_.context->AddTrailingMetadata(kLoadReportTrailer,
                                        env_.load_report(status));
    }
    reply_->sent = std::move(sent);
    std::exchange(reply_, nullptr)->Send(status);
  }

 private:
  const prediction::TransportEnvironment& env_;
  const RawCall raw_;
  const int64_t request_bytes_;
  GrpcReply* reply_;           // Null after Finish().
  bool reports_load_ = false;  // True if the trailers include a load report.
  call::EncodedResults results_;
};

}  // namespace

Reactor* Serve(const call::MethodTable& methods, const call::Method& method,
               const RawCall& raw, SendWatch* sends) {
  // An invalid buffer means that the client cancelled the call before the
  // request arrived.
  if (!raw.request->Valid()) {
    Reactor* const reactor = raw.context->DefaultReactor();
    reactor->Finish(grpc::Status::CANCELLED);
    return reactor;
  }
  auto* const reply = new GrpcReply(raw.context, sends);
  methods.Serve(method,
                std::make_unique<GrpcCall>(methods.environment(), raw, reply));
  return reply;
}

MethodService::MethodService(const call::MethodTable& methods,
                             absl::string_view service,
                             absl::Duration send_timeout)
    : env_(methods.environment()), sends_(send_timeout, env_.clock) {
  for (const call::Method& method : methods.methods()) {
    absl::string_view name = method.name;
    if (!absl::ConsumePrefix(&name, absl::StrCat(service, "/"))) continue;
    if (method.handle != nullptr) {
      AddHandler(
          method, RpcMethod::NORMAL_RPC,
          new grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>(
              [this, &methods, &method](CallbackServerContext* context,
                                        const ByteBuffer* request,
                                        ByteBuffer* response) {
                return Serve(methods, method, {context, request, response},
                             &sends_);
              }));
    } else if (name == "StreamPredict") {
      AddStream<PredictStream>(method);
    } else {
      AddStream<InferStream>(method);
    }
  }
}

void MethodService::AddHandler(const call::Method& method,
                               RpcMethod::RpcType type,
                               grpc::internal::MethodHandler* handler) {
  const int index = static_cast<int>(paths_.size());
  paths_.push_back(absl::StrCat("/", method.name));
  AddMethod(new grpc::internal::RpcServiceMethod(paths_.back().c_str(), type,
                                                 nullptr));
  MarkMethodRawCallback(index, handler);
}

template <typename Stream>
void MethodService::AddStream(const call::Method& method) {
  const auto open =
      [this, &method](CallbackServerContext* context) -> StreamReactor* {
    auto rights = CheckStream(env_.gate, *context, *method.scope);
    if (!rights.ok()) {
      observability::RequestRecord record(
          *method.metric, /*bytes=*/0, context->peer(),
          OnlyHeader(*context, "traceparent"), &env_.metrics, &env_.log);
      record.set_no_model();
      return new Refused<StreamReactor>(
          EndCall(record.Finish(rights.status()), context));
    }
    StreamCall::Options options = Stream::Options();
    options.method = *method.metric;
    options.serving = [this] { return CheckServing(); };
    options.rights = *std::move(rights);
    return streams_.Start(std::make_shared<StreamCall>(
        env_, context, &sends_, std::move(options), Stream(env_, *context)));
  };
  AddHandler(
      method, RpcMethod::BIDI_STREAMING,
      new grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>(open));
}

absl::Status MethodService::CheckServing() const {
  return draining_.load() ? server::Draining("the server") : absl::OkStatus();
}

void MethodService::StartDraining() {
  draining_.store(true);
  streams_.Tick(true);
}

void MethodService::EndUnreadCalls() {
  streams_.Tick(draining_.load());
  const int calls = sends_.CancelLate();
  if (calls == 0) return;
  env_.log.Warning(observability::LogModule::kRequests,
                   "answers were not read: their calls are ended",
                   {{"calls", calls}});
}

}  // namespace sfmamba::rpc
