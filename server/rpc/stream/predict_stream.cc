#include "server/rpc/stream/predict_stream.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/api/vision/predict.h"
#include "server/call/call.h"
#include "server/call/encoded_results.h"
#include "server/call/method_table.h"
#include "server/call/wire/wire_cursor.h"
#include "server/errors/reasons.h"
#include "server/observability/metrics.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/stream/predict_item.h"
#include "server/rpc/wire/received_request.h"

namespace sfmamba::rpc {
namespace {

using call::NotParsed;
using call::WireCursor;
using call::WireExtent;
using call::WireType;
using Proto = v1::StreamPredictRequest;

// The maximum length of a correlation id in characters.
constexpr int kMaxCorrelationId = 128;

v1::StreamPredictResponse ErrorResponse(const std::string& correlation_id,
                                        const absl::Status& error) {
  v1::StreamPredictResponse response;
  response.set_correlation_id(correlation_id);
  *response.mutable_error() = ToRpcStatus(error);
  return response;
}

call::Handler HandlerOf(Proto::RequestCase kind) {
  switch (kind) {
    case Proto::kClassify:
      return api::Predict<v1::ClassifyRequest, v1::ClassifyResponse>;
    case Proto::kDetect:
      return api::Predict<v1::DetectRequest, v1::DetectResponse>;
    default:
      return api::Predict<v1::SegmentRequest, v1::SegmentResponse>;
  }
}

// A valid request of a StreamPredict stream.
class VisionItem final : public PredictItem {
 public:
  VisionItem(StreamMessage message, bool in_order,
             const prediction::TransportEnvironment& environment,
             observability::Method counted_as, prediction::CallInfo info)
      : PredictItem(environment, counted_as, HandlerOf(message.kind),
                    std::move(info)),
        message_(std::move(message)),
        in_order_(in_order) {}

  const std::string& id() const override { return message_.correlation_id; }
  bool in_order() const override { return in_order_; }

 private:
  std::unique_ptr<call::Pictures> ReadPictures(
      int max_images, call::Message* request) override {
    return rpc::ReadPictures(&message_.request, max_images, request);
  }

  void Answer(const absl::Status& status, call::EncodedResults* results,
              call::Message* rest) override {
    if (!status.ok()) return Serialize(ErrorResponse(id(), status), &answer_);
    std::vector<std::string> pieces = results->Take(*rest);
    v1::StreamPredictResponse response;
    response.set_correlation_id(id());
    std::string head = response.SerializeAsString();
    int64_t bytes = 0;
    for (const std::string& piece : pieces) bytes += piece.size();
    const int number = message_.kind - Proto::kClassify +
                       v1::StreamPredictResponse::kClassifyFieldNumber;
    call::AppendVarint(
        number << 3 | static_cast<int>(WireType::kLengthDelimited), &head);
    call::AppendVarint(bytes, &head);
    pieces.insert(pieces.begin(), std::move(head));
    SetPieces(std::move(pieces), &answer_);
  }

  StreamMessage message_;
  const bool in_order_;
};

// A message that is not a valid request. It is answered with an error.
class RefusedItem final : public StreamItem {
 public:
  RefusedItem(std::string correlation_id, bool in_order,
              const absl::Status& error)
      : correlation_id_(std::move(correlation_id)), in_order_(in_order) {
    Serialize(ErrorResponse(correlation_id_, error), &answer_);
  }

  void Cancel() override {}
  const std::string& id() const override { return correlation_id_; }
  bool in_order() const override { return in_order_; }

 private:
  void Begin(const absl::Status&) override { End(); }

  const std::string correlation_id_;
  const bool in_order_;
};

// Returns an error if the message is not a valid request of this stream.
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

// The maximum size in bytes of each of the fields `correlation_id` and `config`
// in a received message. CheckItem() later also limits the correlation id to
// kMaxCorrelationId characters.
constexpr int64_t kMaxText = 1024;

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

// Reads the value of the field with tag `tag` into `message`. If the field
// belongs to the oneof of StreamPredictRequest, also sets `message->kind`. If
// the field is an inner request, such as a ClassifyRequest, does not copy the
// value. Instead, sets the output parameter `request` to the range of the
// value's bytes in the received message. Skips unknown fields.
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
  if (status.ok()) {
    return std::make_unique<VisionItem>(std::move(message), preserve_order_,
                                        env_, stream.method(),
                                        InfoOf(context_, stream.caller()));
  }
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
