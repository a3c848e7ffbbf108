#include "tests/server/tracing/collector_stand_in.h"

#include <chrono>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/support/proto_buffer_reader.h"

namespace sfmamba::tracing {
namespace {

using nlohmann::json;

constexpr char kRequest[] =
    "opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest";

// Converts IDs from protobuf's base64 to hexadecimal, which OTLP's JSON uses.
void WriteIdsInHexadecimal(json* value) {
  if (value->is_array()) {
    for (json& element : *value) WriteIdsInHexadecimal(&element);
  } else if (value->is_object()) {
    for (auto& [key, member] : value->items()) {
      if (key == "traceId" || key == "spanId" || key == "parentSpanId") {
        std::string bytes;
        absl::Base64Unescape(member.get<std::string>(), &bytes);
        member = absl::BytesToHexString(bytes);
      } else {
        WriteIdsInHexadecimal(&member);
      }
    }
  }
}

// Returns the request as JSON. If `bytes` are not a request, returns a value
// whose is_discarded() is true.
json Parse(const grpc::ByteBuffer& bytes) {
  const auto* type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
          kRequest);
  std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(type)
          ->New());
  grpc::ByteBuffer copy(bytes);
  grpc::ProtoBufferReader reader(&copy);
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_enums_as_ints = true;
  if (message->ParseFromZeroCopyStream(&reader)) {
    (void)google::protobuf::util::MessageToJsonString(*message, &text, options);
  }
  json result = json::parse(text, nullptr, false);
  WriteIdsInHexadecimal(&result);
  return result;
}

}  // namespace

// A call with one request and one response.
class CollectorStandIn::Call final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Call(CollectorStandIn* collector) : collector_(*collector) {
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (ok) collector_.Take(request_);
    grpc::Status status;
    {
      absl::MutexLock lock(&collector_.mu_);
      status = collector_.status_;
      hangs_ = ok && collector_.hangs_ && !cancelled_;
      if (hangs_) return;
    }
    if (!ok || !status.ok()) return Finish(status);
    StartWriteAndFinish(&response_, grpc::WriteOptions(), status);
  }
  void OnCancel() override {
    {
      absl::MutexLock lock(&collector_.mu_);
      cancelled_ = true;
      if (!hangs_) return;
    }
    Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  CollectorStandIn& collector_;
  grpc::ByteBuffer request_;
  const grpc::Slice nothing_;
  const grpc::ByteBuffer response_{&nothing_, 1};
  bool hangs_ ABSL_GUARDED_BY(collector_.mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(collector_.mu_) = false;
};

CollectorStandIn::CollectorStandIn(
    const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
  builder.RegisterCallbackGenericService(this);
  server_ = builder.BuildAndStart();
}

CollectorStandIn::~CollectorStandIn() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::string CollectorStandIn::url() const {
  return absl::StrCat("http://127.0.0.1:", port_);
}

void CollectorStandIn::AnswerWith(const grpc::Status& status) {
  absl::MutexLock lock(&mu_);
  status_ = status;
}

void CollectorStandIn::Hang() {
  absl::MutexLock lock(&mu_);
  hangs_ = true;
}

std::vector<json> CollectorStandIn::requests() const {
  absl::MutexLock lock(&mu_);
  return requests_;
}

std::vector<json> CollectorStandIn::spans() const {
  absl::MutexLock lock(&mu_);
  return spans_;
}

bool CollectorStandIn::AwaitSpans(size_t count, absl::Duration limit) const {
  const auto come = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return spans_.size() >= count;
  };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&come), limit);
}

grpc::ServerGenericBidiReactor* CollectorStandIn::CreateReactor(
    grpc::GenericCallbackServerContext* /*context*/) {
  return new Call(this);
}

void CollectorStandIn::Take(const grpc::ByteBuffer& request) {
  json parsed = Parse(request);
  absl::MutexLock lock(&mu_);
  for (const json& resource : parsed["resourceSpans"]) {
    for (const json& scope : resource["scopeSpans"]) {
      for (const json& span : scope["spans"]) spans_.push_back(span);
    }
  }
  requests_.push_back(std::move(parsed));
}

std::string AttributeOf(const json& span, const std::string& key) {
  for (const json& attribute : span["attributes"]) {
    if (attribute["key"] != key) continue;
    const json& value = attribute["value"];
    return value.contains("intValue") ? value["intValue"]
                                      : value["stringValue"];
  }
  return "";
}

}  // namespace sfmamba::tracing
