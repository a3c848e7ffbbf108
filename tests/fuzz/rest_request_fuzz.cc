// Fuzzes requests over REST. The first byte chooses what the other bytes are.
//
// JSON: the server reads long base64 texts itself. Its result must equal
// protobuf's result for the whole body.
//
// A query: it must set fields, or be refused as an invalid request.
//
// A form: its parts must follow each other and lie inside the body.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "server/errors/error.h"
#include "server/rest/json_body.h"
#include "server/rest/prediction_body.h"
#include "server/rest/query_fields.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/fuzz/check.h"

namespace sfmamba {
namespace {

void CheckRefused(const absl::Status& status) {
  Check(absl::IsInvalidArgument(status), "a refusal blames the request");
  Check(!server::GetErrorDetail(status).reason.empty(), "and has a reason");
  Check(status.message().size() < 4096, "in few words");
}

template <typename Request>
void ReadJson(const std::string& json) {
  Request read, whole;
  const absl::Status status = rest::ReadJson(json, &read);
  if (!status.ok()) return CheckRefused(status);
  // protobuf refuses base64 with line breaks, which the server accepts.
  if (!google::protobuf::util::JsonStringToMessage(json, &whole).ok()) return;
  Check(read.SerializeAsString() == whole.SerializeAsString(),
        "protobuf reads the same of the whole");
}

template <typename Request>
void ReadQuery(absl::string_view text) {
  std::multimap<std::string, std::string> query;
  for (absl::string_view parameter : absl::StrSplit(text, '&')) {
    query.insert(absl::StrSplit(parameter, absl::MaxSplits('=', 1)));
  }
  Request request;
  v1::Image* image = request.add_images();
  const absl::Status status = rest::SetFromQuery(
      query,
      {&request, request.mutable_params(), request.mutable_options(), image});
  if (!status.ok()) return CheckRefused(status);
  Check(image->source_case() == v1::Image::SOURCE_NOT_SET,
        "a query has no picture");
  Check(request.images_size() == 1, "and adds none");
}

void ReadForm(const std::string& body) {
  const auto parts = rest::FindParts("multipart/form-data; boundary=b", body);
  if (!parts.ok()) return CheckRefused(parts.status());
  size_t end = 0;
  for (const rest::FormPart& part : *parts) {
    Check(part.begin > end, "parts follow each other");
    end = part.begin + part.size;
    Check(end < body.size(), "and lie in the body");
  }
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer& silencer =
      *new google::protobuf::LogSilencer();
  (void)silencer;
  using namespace sfmamba;
  Input input(data, size);
  switch (input.Below(7)) {
    case 0:
      ReadJson<v1::ClassifyRequest>(input.text());
      break;
    case 1:
      ReadJson<v1::DetectRequest>(input.text());
      break;
    case 2:
      ReadJson<v1::SegmentRequest>(input.text());
      break;
    case 3:
      ReadQuery<v1::ClassifyRequest>(input.bytes());
      break;
    case 4:
      ReadQuery<v1::DetectRequest>(input.bytes());
      break;
    case 5:
      ReadQuery<v1::SegmentRequest>(input.bytes());
      break;
    case 6:
      ReadForm(input.text());
      break;
  }
  return 0;
}
