#include "server/rpc/method_service.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/call/call.h"
#include "server/call/encoded_results.h"
#include "server/rpc/call.h"
#include "server/rpc/load_reports.h"
#include "server/rpc/stream/predict_stream.h"
#include "server/rpc/wire/received_request.h"
#include "server/security/caller.h"

namespace sfmamba::rpc {
namespace {

// gRPC's side of a call. Deletes itself once the response is sent.
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
    // gRPC made the request for this call and does not read it again. Nothing
    // else would free it before the call ends.
    return rpc::ReadPictures(const_cast<grpc::ByteBuffer*>(raw_.request),
                             max_images, request);
  }
  void OnCancel(absl::AnyInvocable<void()> cancelled) override {
    reply_->cancelled = std::move(cancelled);
  }
  call::ResultSink& results() override { return results_; }
  void Finish(const absl::Status& status, const call::Message* rest,
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
  GrpcReply* reply_;           // Null once the call is finished.
  bool reports_load_ = false;  // In its trailers.
  call::EncodedResults results_;
};

}  // namespace

Reactor* Serve(const call::MethodTable& methods, const call::Method& method,
               const RawCall& raw, SendWatch* sends) {
  // The client cancelled the call before its request came.
  if (!raw.request->Valid()) return End(raw, grpc::Status::CANCELLED);
  auto* const reply = new GrpcReply(raw.context, sends);
  methods.Serve(method,
                std::make_unique<GrpcCall>(methods.environment(), raw, reply));
  return reply;
}

MethodService::MethodService(const call::MethodTable& methods,
                             absl::Duration send_timeout)
    : PredictionService(/*name=*/"", methods.environment(), send_timeout) {
  for (const call::Method& method : methods.methods()) {
    const std::string path = absl::StrCat("/", method.name);
    if (method.handle == nullptr) {
      AddStreamPath(path, [this,
                           &method](grpc::CallbackServerContext* context) {
        PredictStream stream(env_, *context, *method.metric);
        return Open(context, stream.Options(), std::move(stream), method.scope);
      });
    } else {
      AddPath(path, [this, &methods, &method](const RawCall& raw) {
        return Serve(methods, method, raw, sends());
      });
    }
  }
}

}  // namespace sfmamba::rpc
