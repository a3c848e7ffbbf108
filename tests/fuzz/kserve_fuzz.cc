// Fuzzes a ModelInferRequest in slices, as gRPC receives it. The server finds
// pictures with its own parser and gives the rest to protobuf. Together they
// must refuse everything that protobuf alone refuses. If they accept a request,
// they must find the same images as protobuf alone.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/logging.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/grpc_service.pb.h"
#include "server/api/kserve/infer_request.h"
#include "server/call/call.h"
#include "server/errors/error.h"
#include "server/image/image_source.h"
#include "server/rpc/wire/received_request.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/sliced_message.h"

namespace sfmamba {
namespace {

using inference::ModelInferRequest;

constexpr int kMaxImages = 64;

// Returns all elements of the input in the form of raw contents.
std::string RawElements(const ModelInferRequest& request) {
  if (request.raw_input_contents_size() > 0) {
    return request.raw_input_contents(0);
  }
  const inference::InferTensorContents& contents = request.inputs(0).contents();
  std::string raw;
  const auto append = [&raw](const auto& number) {
    raw.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  for (const float value : contents.fp32_contents()) append(value);
  for (const uint32_t value : contents.uint_contents()) {
    append(static_cast<uint8_t>(value));
  }
  for (const std::string& file : contents.bytes_contents()) {
    append(static_cast<uint32_t>(file.size()));
    raw += file;
  }
  return raw;
}

// Returns the images that the server found, in the form of raw contents.
std::string RawImages(const ModelInferRequest& message,
                      call::Pictures* pictures) {
  std::string raw;
  for (int i = 0; i < pictures->count(); ++i) {
    image::ImageSource source = kserve::ImageOf(message, i);
    pictures->SetBytes(&source);
    if (source.tensor() != nullptr) {
      absl::StrAppend(&raw, source.tensor()->data,
                      absl::StrJoin(source.tensor()->pieces, ""));
      continue;
    }
    const std::string file(source.encoded()->bytes);
    const uint32_t length = file.size();
    raw.append(reinterpret_cast<const char*>(&length), sizeof(length));
    raw += file;
  }
  return raw;
}

// Returns the request without its elements. The result is serialized, because a
// NaN in a message is not equal to itself.
std::string BesideElements(ModelInferRequest request) {
  request.clear_raw_input_contents();
  for (auto& input : *request.mutable_inputs()) input.clear_contents();
  request.DiscardUnknownFields();
  return request.SerializePartialAsString();
}

void Fuzz(absl::string_view message, std::vector<int> cuts) {
  grpc::ByteBuffer buffer = InSlices(message, std::move(cuts));
  ModelInferRequest received, expected;
  const auto pictures = rpc::ReadPictures(&buffer, kMaxImages, &received);
  const bool valid = expected.ParseFromArray(message.data(), message.size());
  if (!pictures->status().ok()) {
    const std::string reason =
        server::GetErrorDetail(pictures->status()).reason;
    Check(reason == "MALFORMED_MESSAGE" || reason == "INVALID_FIELD",
          "a message is refused as malformed, or as too large");
    Check(!valid || reason == "INVALID_FIELD",
          "and malformed it is by protobuf");
    return;
  }
  if (!pictures->images_status().ok()) {
    const absl::StatusCode code = pictures->images_status().code();
    Check(code == absl::StatusCode::kInvalidArgument ||
              code == absl::StatusCode::kUnimplemented,
          "an input is refused as invalid, or because it names shared memory");
    return;
  }
  // Images above this number are only counted.
  if (pictures->count() > kMaxImages) return;
  Check(valid, "what is accepted is accepted by protobuf");
  Check(received.inputs_size() == 1, "there is one input");
  // A map has no fixed order when it is serialized. So messages whose maps have
  // more than one entry are not compared.
  const bool ordered = expected.parameters_size() < 2 &&
                       expected.inputs(0).parameters_size() < 2;
  Check(!ordered || expected.outputs_size() > 0 ||
            BesideElements(received) == BesideElements(expected),
        "what is beside the elements is protobuf's");
  Check(RawImages(received, pictures.get()) == RawElements(expected),
        "and so are the elements");
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer& silencer =
      *new google::protobuf::LogSilencer();
  (void)silencer;
  sfmamba::Input input(data, size);
  const std::vector<int> cuts = sfmamba::TakeCuts(&input);
  sfmamba::Fuzz(input.bytes(), cuts);
  return 0;
}
