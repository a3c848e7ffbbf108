// Fuzzes a stream's message in slices. The outer message must be read as
// protobuf reads it. The bytes of the request inside must not change.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "server/errors/error.h"
#include "server/rpc/stream/predict_stream.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/fuzz/check.h"

namespace sfmamba {
namespace {

using Proto = v1::StreamPredictRequest;

std::string Joined(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string all;
  if (buffer.Length() == 0 || !buffer.Dump(&slices).ok()) return all;
  for (const grpc::Slice& slice : slices) {
    all.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return all;
}

// Returns the message, serialized without its unknown fields.
template <typename Message>
std::string Known(Message message) {
  message.DiscardUnknownFields();
  return message.SerializeAsString();
}

template <typename Request>
void CheckRequest(const std::string& bytes, const Request& expected) {
  Request request;
  Check(request.ParseFromString(bytes), "the request is protobuf's");
  Check(Known(request) == Known(expected), "and equal to what it reads");
}

void Fuzz(absl::string_view bytes, std::vector<int> cuts) {
  cuts.push_back(256);
  std::sort(cuts.begin(), cuts.end());
  std::vector<grpc::Slice> slices;
  size_t begin = 0;
  for (const int cut : cuts) {
    const size_t end = bytes.size() * cut / 256;
    slices.emplace_back(bytes.data() + begin, end - begin);
    begin = end;
  }
  grpc::ByteBuffer buffer(slices.data(), slices.size());
  rpc::StreamMessage message;
  const absl::Status status = rpc::OpenStreamMessage(&buffer, &message);
  if (!status.ok()) {
    Check(status.code() == absl::StatusCode::kInvalidArgument,
          "a message is refused as an invalid argument");
    Check(server::GetErrorDetail(status).reason == "MALFORMED_MESSAGE",
          "as malformed");
    return;
  }
  Proto expected;
  // The request inside the message has not been parsed yet.
  if (!expected.ParseFromArray(bytes.data(), bytes.size())) return;
  Check(message.correlation_id == expected.correlation_id(), "its id");
  Check(message.kind == expected.request_case(), "its kind");
  const std::string request = Joined(message.request);
  switch (message.kind) {
    case Proto::kConfig:
      Check(Known(message.config) == Known(expected.config()), "its config");
      break;
    case Proto::kClassify:
      CheckRequest(request, expected.classify());
      break;
    case Proto::kDetect:
      CheckRequest(request, expected.detect());
      break;
    case Proto::kSegment:
      CheckRequest(request, expected.segment());
      break;
    case Proto::REQUEST_NOT_SET:
      Check(request.empty(), "nothing comes of nothing");
  }
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer& silencer =
      *new google::protobuf::LogSilencer();
  (void)silencer;
  sfmamba::Input input(data, size);
  std::vector<int> cuts(input.Below(6));
  for (int& cut : cuts) cut = input.Below(256);
  sfmamba::Fuzz(input.bytes(), cuts);
  return 0;
}
