#include "server/rpc/stream/predict_stream.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/errors/reasons.h"
#include "server/observability/metrics.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/proto_writer.h"

namespace sfmamba::rpc {
namespace {

using Proto = v1::StreamPredictRequest;

constexpr int kMaxCorrelationId = 128;  // Characters.

// One request of a StreamPredict call.
class VisionItem : public StreamItem {
 public:
  VisionItem(std::string correlation_id, bool in_order)
      : correlation_id_(std::move(correlation_id)), in_order_(in_order) {}

  const std::string& id() const final { return correlation_id_; }
  bool in_order() const final { return in_order_; }

 protected:
  // Makes `message` the answer.
  void Answer(v1::StreamPredictResponse message) {
    message.set_correlation_id(correlation_id_);
    Serialize(message, &answer_);
  }
  void Answer(const absl::Status& error) {
    v1::StreamPredictResponse message;
    *message.mutable_error() = ToRpcStatus(error);
    Answer(std::move(message));
  }

 private:
  const std::string correlation_id_;
  const bool in_order_;
};

// A request for a prediction. `context` and `environment` outlive it.
template <typename Request, typename Response, typename TaskAnswer>
class PredictItem final : public VisionItem,
                          private ProtoWriter<Request, Response, TaskAnswer> {
 public:
  // Makes this task's alternative of the response, mutable_<task>().
  using Mutable = Response* (v1::StreamPredictResponse::*)();

  PredictItem(std::string correlation_id, bool in_order,
              grpc::ByteBuffer* request,
              const prediction::PredictionEnvironment& environment,
              const grpc::CallbackServerContext& context,
              const security::Caller& caller, Mutable alternative)
      : VisionItem(std::move(correlation_id), in_order),
        Writer(request, environment.limits.max_images),
        alternative_(alternative),
        prediction_(
            environment,
            this->request_.Translate(observability::Method::kStreamPredict,
                                     InfoOf(context, caller)),
            this) {}

  void Cancel() override { prediction_.Cancel(); }

 private:
  using Writer = ProtoWriter<Request, Response, TaskAnswer>;

  void Begin(const absl::Status& serving) override {
    prediction_.Start(serving.ok() ? this->request_.status() : serving);
  }
  void Done(const absl::Status& status) override {
    if (status.ok()) {
      v1::StreamPredictResponse message;
      (message.*alternative_)()->Swap(&this->response_);
      Answer(std::move(message));
    } else {
      Answer(status);
    }
    End();
  }

  const Mutable alternative_;
  prediction::Prediction prediction_;  // Last: it uses everything above.
};

// A message that asks for nothing that could be done.
class RefusedItem final : public VisionItem {
 public:
  RefusedItem(std::string correlation_id, bool in_order,
              const absl::Status& error)
      : VisionItem(std::move(correlation_id), in_order) {
    Answer(error);
  }

  void Cancel() override {}

 private:
  void Begin(const absl::Status&) override { End(); }
};

StreamCall::Options OptionsOf(StreamRights rights,
                              std::function<absl::Status()> serving) {
  StreamCall::Options options;
  options.method = observability::Method::kStreamPredict;
  options.max_in_flight = PredictStream::kDefaultInFlight;
  options.serving = std::move(serving);
  options.caller = std::move(rights.caller);
  options.allowed = std::move(rights.allowed);
  v1::StreamPredictResponse notice;
  notice.mutable_notice()->set_kind(v1::Notice::DRAINING);
  Serialize(notice, &options.draining_notice);
  return options;
}

}  // namespace

PredictStream::PredictStream(
    const prediction::TransportEnvironment& environment,
    grpc::CallbackServerContext* context, SendWatch* sends, StreamRights rights,
    std::function<absl::Status()> serving)
    : StreamCall(environment, context, sends,
                 OptionsOf(std::move(rights), std::move(serving))),
      env_(environment),
      context_(*context) {}

absl::StatusOr<std::unique_ptr<StreamItem>> PredictStream::Take(
    grpc::ByteBuffer* received) {
  StreamMessage message;
  const absl::Status opened = OpenStreamMessage(received, &message);
  if (!opened.ok()) return opened;
  const bool is_first = !std::exchange(any_message_, true);
  if (message.kind == Proto::kConfig) {
    const absl::Status status =
        is_first ? Configure(message.config)
                 : server::InvalidField("config",
                                        "got it after other messages, expected "
                                        "it in the first one or not at all");
    if (!status.ok()) return status;
    return nullptr;
  }
  const absl::Status status = CheckItem(message);
  if (status.ok()) return MakeItem(std::move(message));
  return std::make_unique<RefusedItem>(std::move(message.correlation_id),
                                       preserve_order_, Record(status));
}

absl::Status PredictStream::Configure(const v1::StreamConfig& config) {
  const int got = config.max_in_flight();
  if (got < 1 || got > kMostInFlight) {
    return server::OutOfRange("config.max_in_flight", got, 1, kMostInFlight);
  }
  SetMaxInFlight(got);
  preserve_order_ = config.preserve_order();
  return absl::OkStatus();
}

absl::Status PredictStream::CheckItem(const StreamMessage& message) {
  const std::string& id = message.correlation_id;
  if (id.empty() || base::Utf8Length(id) > kMaxCorrelationId) {
    return server::InvalidField(
        "correlation_id",
        absl::StrCat("got ", base::Utf8Length(id),
                     " characters, expected 1 to ", kMaxCorrelationId));
  }
  if (IsInFlight(id)) {
    return server::InvalidField(
        "correlation_id", "got that of a request which is still in flight");
  }
  if (message.kind == Proto::REQUEST_NOT_SET) {
    return server::InvalidField(
        "request", "got none, expected classify, detect or segment");
  }
  return absl::OkStatus();
}

std::unique_ptr<StreamItem> PredictStream::MakeItem(StreamMessage message) {
  switch (message.kind) {
    case Proto::kClassify:
      return MakePredictItem<v1::ClassifyRequest, v1::ClassifyResponse,
                             prediction::ClassificationAnswer>(
          std::move(message), &v1::StreamPredictResponse::mutable_classify);
    case Proto::kDetect:
      return MakePredictItem<v1::DetectRequest, v1::DetectResponse,
                             prediction::DetectionAnswer>(
          std::move(message), &v1::StreamPredictResponse::mutable_detect);
    default:
      return MakePredictItem<v1::SegmentRequest, v1::SegmentResponse,
                             prediction::SegmentationAnswer>(
          std::move(message), &v1::StreamPredictResponse::mutable_segment);
  }
}

template <typename Request, typename Response, typename Answer>
std::unique_ptr<StreamItem> PredictStream::MakePredictItem(
    StreamMessage message,
    Response* (v1::StreamPredictResponse::*alternative)()) {
  return std::make_unique<PredictItem<Request, Response, Answer>>(
      std::move(message.correlation_id), preserve_order_, &message.request,
      env_, context_, caller(), alternative);
}

}  // namespace sfmamba::rpc
