#include "server/rest/response_body.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/util/json_util.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rest {
namespace {

using google::protobuf::io::CodedOutputStream;

constexpr char kResults[] = "{\"results\":[";

http::HttpResponse WithType(Encoding encoding) {
  http::HttpResponse response;
  response.headers.emplace_back("Content-Type", encoding == Encoding::kJson
                                                    ? "application/json"
                                                    : "application/x-protobuf");
  return response;
}

// The tag and the length of a result within its response.
std::string ResultHead(size_t length) {
  // All three responses number it alike.
  constexpr int kField = v1::ClassifyResponse::kResultsFieldNumber;
  static_assert(v1::DetectResponse::kResultsFieldNumber == kField);
  static_assert(v1::SegmentResponse::kResultsFieldNumber == kField);
  constexpr uint32_t kTag = kField << 3 | 2;  // Length-delimited.
  uint8_t bytes[16];
  uint8_t* end = CodedOutputStream::WriteTagToArray(kTag, bytes);
  end = CodedOutputStream::WriteVarint64ToArray(length, end);
  return std::string(bytes, end);
}

}  // namespace

Encoding EncodingFor(absl::string_view accept) {
  const bool protobuf = absl::StrContains(accept, "application/x-protobuf") ||
                        absl::StrContains(accept, "application/protobuf");
  return protobuf ? Encoding::kProtobuf : Encoding::kJson;
}

std::string ToJson(const google::protobuf::Message& message) {
  std::string json;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &json);
  return status.ok() ? json : "{}";
}

http::HttpResponse MessageResponse(const google::protobuf::Message& message,
                                   Encoding encoding) {
  http::HttpResponse response = WithType(encoding);
  response.body.push_back(encoding == Encoding::kJson
                              ? ToJson(message)
                              : message.SerializeAsString());
  return response;
}

void ResponseBody::Start(int images) {
  results_.assign(images, encoding_ == Encoding::kJson ? "{}" : ResultHead(0));
}

int64_t ResponseBody::SetResult(int i,
                                const google::protobuf::Message& result) {
  if (encoding_ == Encoding::kJson) {
    results_[i] = ToJson(result);
  } else {
    results_[i] = ResultHead(result.ByteSizeLong());
    result.AppendToString(&results_[i]);
  }
  return results_[i].size();
}

int64_t ResponseBody::Bytes(const google::protobuf::Message& rest) const {
  const bool json = encoding_ == Encoding::kJson;
  int64_t bytes = json
                      ? sizeof(kResults) + results_.size() + ToJson(rest).size()
                      : rest.ByteSizeLong();
  for (const std::string& result : results_) bytes += result.size();
  return bytes;
}

http::HttpResponse ResponseBody::Take(const google::protobuf::Message& rest) {
  http::HttpResponse response = WithType(encoding_);
  std::vector<std::string>& body = response.body;
  if (encoding_ == Encoding::kProtobuf) {
    // Fields of a message may come in any order and in pieces.
    body = std::move(results_);
    body.push_back(rest.SerializeAsString());
    return response;
  }
  body.push_back(kResults);
  for (size_t i = 0; i < results_.size(); ++i) {
    if (i > 0) body.push_back(",");
    body.push_back(std::move(results_[i]));
  }
  const std::string others = ToJson(rest);  // An object.
  body.push_back(absl::StrCat("]", others == "{}" ? "" : ",",
                              absl::string_view(others).substr(1)));
  return response;
}

}  // namespace sfmamba::rest
