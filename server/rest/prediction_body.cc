#include "server/rest/prediction_body.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/image_format.h"
#include "boost/beast/http/rfc7230.hpp"
#include "grpcpp/support/slice.h"
#include "server/errors/reasons.h"
#include "server/rest/call_headers.h"
#include "server/rest/json_body.h"
#include "server/rest/query_fields.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rest {
namespace {

using google::protobuf::Message;
using Fields = std::multimap<std::string, std::string>;

constexpr size_t kMaxShown = 64;    // Most bytes shown of a refused name.
constexpr size_t kMaxField = 1024;  // Most bytes of a form's field.

// A request message has its parameters in itself.
absl::Status CheckNoQuery(const http::HttpRequest& request) {
  if (request.query.empty()) return absl::OkStatus();
  return server::InvalidField(
      absl::CHexEscape(
          absl::string_view(request.query.begin()->first).substr(0, kMaxShown)),
      "got a parameter in the query, expected none: those of a message are in "
      "its body");
}

// Returns all of a body, which lives as long as the bytes.
grpc::ByteBuffer BytesOf(std::string body) {
  auto* kept = new std::string(std::move(body));
  const grpc::Slice slice(
      kept->data(), kept->size(),
      [](void* data) { delete static_cast<std::string*>(data); }, kept);
  return grpc::ByteBuffer(&slice, 1);
}

// Takes the fields out of a form's parts: what has no file's name and is no
// picture. INVALID_ARGUMENT if nothing else is left.
absl::Status TakeFields(absl::string_view body, std::vector<FormPart>* parts,
                        Fields* fields) {
  std::vector<FormPart> files;
  for (FormPart& part : *parts) {
    const absl::string_view content = body.substr(part.begin, part.size);
    if (part.has_file_name || IsPicture(content)) {
      files.push_back(std::move(part));
    } else if (content.size() > kMaxField) {
      return server::InvalidField(
          absl::CHexEscape(absl::string_view(part.name).substr(0, kMaxShown)),
          absl::StrCat("got ", content.size(), " bytes, expected at most ",
                       kMaxField, ", or a picture"));
    } else {
      fields->emplace(std::move(part.name), std::string(content));
    }
  }
  *parts = std::move(files);
  if (!parts->empty()) return absl::OkStatus();
  return server::InvalidField(
      "images",
      "got a form without a file, expected a picture in it, which curl sends "
      "by -F image=@FILE");
}

// Fills `read` with the body's pictures, which all have the same parameters.
absl::Status ReadPictures(BodyForm form, http::HttpRequest* request,
                          Message* read) {
  std::vector<FormPart> parts = {{"", true, 0, request->body.size()}};
  Fields fields = std::move(request->query);
  absl::Status status;
  if (form == BodyForm::kForm) {
    auto found = FindParts(Header(*request, "content-type"), request->body);
    if (!found.ok()) return found.status();
    parts = *std::move(found);
    status = TakeFields(request->body, &parts, &fields);
    if (!status.ok()) return status;
  }
  const auto part_of = [read](const char* name) {
    return read->GetReflection()->MutableMessage(
        read, read->GetDescriptor()->FindFieldByName(name));
  };
  v1::Image common;
  status = SetFromQuery(fields,
                        {read, part_of("params"), part_of("options"), &common});
  if (!status.ok()) return status;
  for (const FormPart& part : parts) {
    auto* image = static_cast<v1::Image*>(read->GetReflection()->AddMessage(
        read, read->GetDescriptor()->FindFieldByName("images")));
    *image = common;
    image->set_encoded(form == BodyForm::kForm
                           ? request->body.substr(part.begin, part.size)
                           : std::move(request->body));
  }
  request->body = std::string();
  return absl::OkStatus();
}

constexpr size_t kMaxBoundary = 70;   // RFC 2046, 5.1.1.
constexpr size_t kMaxHead = 4 << 10;  // Most bytes of a part's headers.
constexpr absl::string_view kBlank = "\r\n\r\n";  // Ends the headers.

absl::Status Malformed(absl::string_view message) {
  return server::MalformedMessage(absl::StrCat("form: ", message));
}

// Returns a parameter of a header's value, such as the boundary of
// "multipart/form-data; boundary=x".
std::optional<std::string> Parameter(absl::string_view value,
                                     absl::string_view name) {
  value.remove_prefix(std::min(value.find(';'), value.size()));
  const boost::beast::http::param_list parameters(
      boost::beast::string_view(value.data(), value.size()));
  for (const auto& parameter : parameters) {
    if (absl::EqualsIgnoreCase(std::string(parameter.first), name)) {
      return std::string(parameter.second);
    }
  }
  return std::nullopt;
}

// Reads the headers of a part; false if it has no name.
bool ReadHead(absl::string_view head, FormPart* part) {
  for (absl::string_view line : absl::StrSplit(head, "\r\n")) {
    const std::pair<absl::string_view, absl::string_view> header =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (!absl::EqualsIgnoreCase(header.first, "content-disposition")) continue;
    std::optional<std::string> name = Parameter(header.second, "name");
    if (!name.has_value()) return false;
    part->name = *std::move(name);
    part->has_file_name = Parameter(header.second, "filename").has_value();
    return true;
  }
  return false;
}

}  // namespace

BodyForm FormOf(absl::string_view content_type, absl::string_view body) {
  if (IsPicture(body)) return BodyForm::kPicture;
  const std::string type = absl::AsciiStrToLower(absl::StripAsciiWhitespace(
      content_type.substr(0, content_type.find(';'))));
  if (type == "multipart/form-data") return BodyForm::kForm;
  if (type == "application/x-protobuf" || type == "application/protobuf") {
    return BodyForm::kProtobuf;
  }
  const bool is_object =
      absl::StartsWith(absl::StripLeadingAsciiWhitespace(body), "{");
  return is_object || type == "application/json" ? BodyForm::kJson
                                                 : BodyForm::kPicture;
}

bool IsPicture(absl::string_view body) {
  return base::FormatOf(body).has_value();
}

absl::Status ReadBody(http::HttpRequest* request, server::MemoryBudget* memory,
                      Message* read, grpc::ByteBuffer* message,
                      server::MemoryHold* surplus) {
  const BodyForm form = FormOf(Header(*request, "content-type"), request->body);
  absl::Status status;
  if (form == BodyForm::kPicture || form == BodyForm::kForm) {
    status = ReadPictures(form, request, read);
  } else {
    status = CheckNoQuery(*request);
  }
  if (!status.ok()) return status;
  if (form == BodyForm::kProtobuf) {
    *message = BytesOf(std::move(request->body));
  } else if (form != BodyForm::kJson) {
    *message = BytesOf(read->SerializeAsString());
  } else {
    const int64_t bytes = request->body.size();
    absl::StatusOr<server::MemoryHold> hold =
        memory->Take(server::MemoryUse::kMessage, bytes);
    if (!hold.ok()) return hold.status();
    status = ReadJson(std::move(request->body), read);
    if (!status.ok()) return status;
    *message = BytesOf(read->SerializeAsString());
    // The prediction holds the message's own bytes.
    *surplus = *std::move(hold);
    status = surplus->Resize(
        std::max<int64_t>(0, bytes - static_cast<int64_t>(message->Length())));
  }
  return status;
}

absl::StatusOr<std::vector<FormPart>> FindParts(absl::string_view content_type,
                                                absl::string_view body) {
  const std::string boundary = Parameter(content_type, "boundary").value_or("");
  if (boundary.empty() || boundary.size() > kMaxBoundary) {
    return Malformed(absl::StrCat("got a boundary of ", boundary.size(),
                                  " bytes in Content-Type, expected 1 to ",
                                  kMaxBoundary));
  }
  const std::string delimiter = absl::StrCat("\r\n--", boundary);
  std::vector<FormPart> parts;
  // The first delimiter may be the body's first line.
  size_t at = delimiter.size() - 2;
  if (body.substr(0, at) != absl::string_view(delimiter).substr(2)) {
    at = body.find(delimiter);
    if (at == body.npos) return Malformed("got no boundary in the body");
    at += delimiter.size();
  }
  while (true) {
    absl::string_view rest = body.substr(at);
    if (absl::StartsWith(rest, "--")) return parts;
    while (absl::ConsumePrefix(&rest, " ") ||
           absl::ConsumePrefix(&rest, "\t")) {
    }
    if (!absl::ConsumePrefix(&rest, "\r\n")) {
      return Malformed(absl::StrCat(
          "got a boundary that is no line of its own, before byte ", at));
    }
    if (parts.size() == kMostParts) {
      return Malformed(absl::StrCat("got more than ", kMostParts, " parts"));
    }
    FormPart part;
    const size_t head = rest.substr(0, kMaxHead).find(kBlank);
    if (head == rest.npos || !ReadHead(rest.substr(0, head), &part)) {
      return Malformed(absl::StrCat(
          "got a part without a name, expected Content-Disposition: "
          "form-data; name=\"...\" within ",
          kMaxHead, " bytes from byte ", at));
    }
    part.begin = body.size() - rest.size() + head + kBlank.size();
    const size_t end = body.find(delimiter, part.begin);
    if (end == body.npos) {
      return Malformed(absl::StrCat("the part that begins at byte ", part.begin,
                                    " does not end; the body has ", body.size(),
                                    " bytes"));
    }
    part.size = end - part.begin;
    parts.push_back(std::move(part));
    at = end + delimiter.size();
  }
}

}  // namespace sfmamba::rest
