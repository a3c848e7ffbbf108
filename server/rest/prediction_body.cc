#include "server/rest/prediction_body.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/support/slice.h"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

constexpr size_t kMaxShown = 64;  // Most bytes shown of a refused text.

}  // namespace

BodyForm FormOf(absl::string_view content_type) {
  const std::string type = absl::AsciiStrToLower(absl::StripAsciiWhitespace(
      content_type.substr(0, content_type.find(';'))));
  if (type.empty() || absl::StartsWith(type, "image/") ||
      type == "application/octet-stream") {
    return BodyForm::kPicture;
  }
  if (type == "application/json") return BodyForm::kJson;
  if (type == "application/x-protobuf" || type == "application/protobuf") {
    return BodyForm::kProtobuf;
  }
  return BodyForm::kUnknown;
}

absl::Status UnknownForm(absl::string_view content_type) {
  return server::InvalidField(
      "content-type",
      absl::StrCat("header content-type: got \"",
                   absl::CHexEscape(content_type.substr(0, kMaxShown)),
                   "\", expected a picture's, such as image/jpeg or "
                   "application/octet-stream, application/json or "
                   "application/x-protobuf"));
}

absl::Status CheckNoQuery(const http::HttpRequest& request) {
  if (request.query.empty()) return absl::OkStatus();
  const std::string name = absl::CHexEscape(
      absl::string_view(request.query.begin()->first).substr(0, kMaxShown));
  return server::InvalidField(
      name, absl::StrCat("got the parameter \"", name,
                         "\", expected none: parameters of a message are in "
                         "its body"));
}

grpc::ByteBuffer BytesOf(std::string body) {
  auto* kept = new std::string(std::move(body));
  const grpc::Slice slice(
      kept->data(), kept->size(),
      [](void* data) { delete static_cast<std::string*>(data); }, kept);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace sfmamba::rest
