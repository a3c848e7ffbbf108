#include "server/rest/response_body.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"

namespace sfmamba::rest {
namespace {

constexpr char kResults[] = "{\"results\":[";

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

void ResponseBody::Start(int count) {
  if (encoding_ == Encoding::kProtobuf) return protobuf_.Start(count);
  json_.emplace(count, "{}");
}

int64_t ResponseBody::Set(int i, const call::Message& result) {
  if (encoding_ == Encoding::kProtobuf) return protobuf_.Set(i, result);
  std::string& text = (*json_)[i];
  text = ToJson(result);
  return text.size();
}

int64_t ResponseBody::Bytes(const call::Message& rest) const {
  if (encoding_ == Encoding::kProtobuf) return protobuf_.Bytes(rest);
  int64_t bytes = sizeof(kResults) + json_->size() + ToJson(rest).size();
  for (const std::string& result : *json_) bytes += result.size();
  return bytes;
}

http::HttpResponse ResponseBody::Take(const call::Message& rest) {
  http::HttpResponse response;
  const bool is_protobuf = encoding_ == Encoding::kProtobuf;
  response.headers.emplace_back("Content-Type", is_protobuf
                                                    ? "application/x-protobuf"
                                                    : "application/json");
  std::vector<std::string>& body = response.body;
  if (is_protobuf) {
    body = protobuf_.Take(rest);
    return response;
  }
  // `others` is a JSON object with all fields except `results`.
  const std::string others = ToJson(rest);
  if (!json_.has_value()) {
    body = {others};
    return response;
  }
  body.push_back(kResults);
  for (size_t i = 0; i < json_->size(); ++i) {
    if (i > 0) body.push_back(",");
    body.push_back(std::move((*json_)[i]));
  }
  body.push_back(absl::StrCat("]", others == "{}" ? "" : ",",
                              absl::string_view(others).substr(1)));
  return response;
}

}  // namespace sfmamba::rest
