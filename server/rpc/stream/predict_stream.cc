#include "server/rpc/stream/predict_stream.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/call/wire/wire_cursor.h"
#include "server/errors/reasons.h"
#include "server/observability/metrics.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/proto_prediction.h"
#include "server/rpc/wire/received_request.h"

namespace sfmamba::rpc {
namespace {

using call::NotParsed;
using call::WireCursor;
using call::WireExtent;
using call::WireType;
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

// A request for a prediction.
template <typename Asked>
class PredictItem final : public VisionItem {
 public:
  // Makes this task's alternative of the response, mutable_<task>().
  using Mutable = typename Asked::Response* (v1::StreamPredictResponse::*)();

  // `context` and `environment` outlive it.
  PredictItem(StreamMessage message, bool in_order,
              const prediction::TransportEnvironment& environment,
              const grpc::CallbackServerContext& context,
              const security::Caller& caller, Mutable alternative)
      : VisionItem(std::move(message.correlation_id), in_order),
        asked_(environment, observability::Method::kStreamPredict,
               InfoOf(context, caller), &message.request,
               [this, alternative](const absl::Status& status,
                                   typename Asked::Response* response) {
                 Done(status, alternative, response);
               }) {}

  void Cancel() override { asked_.Cancel(); }

 private:
  void Begin(const absl::Status& serving) override { asked_.Run(serving); }

  void Done(const absl::Status& status, Mutable alternative,
            typename Asked::Response* response) {
    if (status.ok()) {
      v1::StreamPredictResponse message;
      (message.*alternative)()->Swap(response);
      Answer(std::move(message));
    } else {
      Answer(status);
    }
    End();
  }

  Asked asked_;  // Last: it uses everything above.
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

// An error if the message cannot be a request of this stream.
absl::Status CheckItem(const StreamMessage& message, StreamCall* stream) {
  const std::string& id = message.correlation_id;
  if (id.empty() || base::Utf8Length(id) > kMaxCorrelationId) {
    return server::InvalidField(
        "correlation_id",
        absl::StrCat("got ", base::Utf8Length(id),
                     " characters, expected 1 to ", kMaxCorrelationId));
  }
  if (stream->IsInFlight(id)) {
    return server::InvalidField(
        "correlation_id", "got that of a request which is still in flight");
  }
  if (message.kind == Proto::REQUEST_NOT_SET) {
    return server::InvalidField(
        "request", "got none, expected classify, detect or segment");
  }
  return absl::OkStatus();
}

constexpr int64_t kMaxText = 1024;  // Most bytes of a small field.

absl::Status CopyText(WireCursor* cursor, const char* name, std::string* text) {
  int64_t length = 0;
  if (!cursor->ReadLength(cursor->size(), &length)) return NotParsed();
  if (length > kMaxText) {
    return server::MalformedMessage(absl::StrCat(
        name, ": got ", length, " bytes, expected at most ", kMaxText));
  }
  text->clear();
  return cursor->Copy(length, cursor->size(), text) ? absl::OkStatus()
                                                    : NotParsed();
}

// Reads the field that `tag` begins.
absl::Status ReadField(WireCursor* cursor, uint32_t tag, StreamMessage* message,
                       WireExtent* request) {
  const uint32_t number = call::NumberOf(tag);
  if (call::TypeOf(tag) != WireType::kLengthDelimited ||
      number > Proto::kSegmentFieldNumber) {
    return cursor->SkipField(tag, cursor->size(), call::kMaxWireDepth)
               ? absl::OkStatus()
               : NotParsed();
  }
  if (number == Proto::kCorrelationIdFieldNumber) {
    const absl::Status status =
        CopyText(cursor, "correlation_id", &message->correlation_id);
    if (!status.ok()) return status;
    return base::Utf8Length(message->correlation_id) >= 0 ? absl::OkStatus()
                                                          : NotParsed();
  }
  if (message->kind != Proto::REQUEST_NOT_SET) {
    return server::MalformedMessage(
        "got more than one request or config, expected one");
  }
  message->kind = static_cast<Proto::RequestCase>(number);
  if (number == Proto::kConfigFieldNumber) {
    std::string text;
    const absl::Status status = CopyText(cursor, "config", &text);
    if (!status.ok()) return status;
    return message->config.ParseFromString(text) ? absl::OkStatus()
                                                 : NotParsed();
  }
  return cursor->SkipBytes(cursor->size(), request) ? absl::OkStatus()
                                                    : NotParsed();
}

}  // namespace

StreamCall::Options PredictStream::Options() {
  StreamCall::Options options;
  options.max_in_flight = kDefaultInFlight;
  v1::StreamPredictResponse notice;
  notice.mutable_notice()->set_kind(v1::Notice::DRAINING);
  Serialize(notice, &options.draining_notice);
  return options;
}

absl::StatusOr<std::unique_ptr<StreamItem>> PredictStream::operator()(
    StreamCall& stream, grpc::ByteBuffer* received) {
  StreamMessage message;
  const absl::Status opened = OpenStreamMessage(received, &message);
  if (!opened.ok()) return opened;
  const bool is_first = !std::exchange(any_message_, true);
  if (message.kind == Proto::kConfig) {
    const absl::Status status =
        is_first ? Configure(message.config, &stream)
                 : server::InvalidField("config",
                                        "got it after other messages, expected "
                                        "it in the first one or not at all");
    if (!status.ok()) return status;
    return nullptr;
  }
  const absl::Status status = CheckItem(message, &stream);
  if (status.ok()) return MakeItem(std::move(message), stream.caller());
  return std::make_unique<RefusedItem>(std::move(message.correlation_id),
                                       preserve_order_, stream.Record(status));
}

absl::Status PredictStream::Configure(const v1::StreamConfig& config,
                                      StreamCall* stream) {
  const int got = config.max_in_flight();
  if (got < 1 || got > kMostInFlight) {
    return server::OutOfRange("config.max_in_flight", got, 1, kMostInFlight);
  }
  stream->SetMaxInFlight(got);
  preserve_order_ = config.preserve_order();
  return absl::OkStatus();
}

std::unique_ptr<StreamItem> PredictStream::MakeItem(
    StreamMessage message, const security::Caller& caller) const {
  using Response = v1::StreamPredictResponse;
  switch (message.kind) {
    case Proto::kClassify:
      return std::make_unique<PredictItem<Classification>>(
          std::move(message), preserve_order_, env_, context_, caller,
          &Response::mutable_classify);
    case Proto::kDetect:
      return std::make_unique<PredictItem<Detection>>(
          std::move(message), preserve_order_, env_, context_, caller,
          &Response::mutable_detect);
    default:
      return std::make_unique<PredictItem<Segmentation>>(
          std::move(message), preserve_order_, env_, context_, caller,
          &Response::mutable_segment);
  }
}

absl::Status OpenStreamMessage(grpc::ByteBuffer* received,
                               StreamMessage* message) {
  const MessageSlices taken(received);
  if (!taken.ok) return NotParsed();
  WireCursor cursor(taken.parts);
  WireExtent request = {};
  while (cursor.position() < cursor.size()) {
    uint32_t tag = 0;
    if (!cursor.ReadTag(cursor.size(), &tag)) return NotParsed();
    const absl::Status status = ReadField(&cursor, tag, message, &request);
    if (!status.ok()) return status;
  }
  message->request = PictureBytes(taken.slices, {request}).Share(0);
  return absl::OkStatus();
}

}  // namespace sfmamba::rpc
