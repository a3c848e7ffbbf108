#include "server/rest/prediction_body.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
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
#include "server/call/wire/wire_request.h"
#include "server/errors/reasons.h"
#include "server/rest/call_headers.h"
#include "server/rest/json_body.h"
#include "server/rest/query_fields.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rest {
namespace {

using google::protobuf::Message;
using Fields = std::multimap<std::string, std::string>;

// The maximum number of bytes of a rejected name in an error message.
constexpr size_t kMaxShown = 64;
// The maximum size of a form field in bytes.
constexpr size_t kMaxField = 1024;

// Returns an error if there are query parameters. Used if the body is a
// complete request message, which contains the parameters.
absl::Status CheckNoQuery(const http::HttpRequest& request) {
  if (request.query.empty()) return absl::OkStatus();
  return server::InvalidField(
      absl::CHexEscape(
          absl::string_view(request.query.begin()->first).substr(0, kMaxShown)),
      "got a parameter in the query, expected none: those of a message are in "
      "its body");
}

// Moves the fields of a form from `parts` to `fields`. A part is a file if it
// has a file name or if its content is a picture. All other parts are fields.
// The files stay in `parts`. Returns INVALID_ARGUMENT if a field is larger than
// kMaxField or if there is no file.
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

class BodyPictures final : public OwnedPictures {
 public:
  BodyPictures(const absl::Status& status, int max_images,
               http::HttpRequest* request, server::MemoryBudget* memory,
               Message* message)
      : OwnedPictures(request->body.size()) {
    status_ = status.ok() ? Read(max_images, request, memory, message) : status;
  }

 private:
  // Implements ReadBody().
  absl::Status Read(int max_images, http::HttpRequest* request,
                    server::MemoryBudget* memory, Message* message);
  absl::Status ReadForm(bool is_form, http::HttpRequest* request,
                        Message* message);
  absl::Status ReadProtobuf(int max_images, std::string body, Message* message);
  absl::Status ReadJson(std::string body, server::MemoryBudget* memory,
                        Message* message);
};

// The maximum length of a boundary in bytes (RFC 2046, 5.1.1).
constexpr size_t kMaxBoundary = 70;
// The maximum size of a part's headers in bytes.
constexpr size_t kMaxHead = 4 << 10;
// The end of a part's headers.
constexpr absl::string_view kBlank = "\r\n\r\n";

absl::Status Malformed(absl::string_view message) {
  return server::MalformedMessage(absl::StrCat("form: ", message));
}

// Returns the parameter `name` of a header value, such as "boundary" of
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

// Reads the headers of a part. Returns false if the part has no name.
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

void OwnedPictures::SetBytes(image::ImageSource* source) {
  const auto set = [this](absl::string_view* index) {
    // The parsed message contains an index into views_ in place of the image's
    // bytes (see call::IndexBytes()). `*index` is at first a view of this
    // encoded index. It then becomes the view of the image's bytes. `*index` is
    // empty if the request contains no bytes for this image.
    if (!index->empty()) *index = views_[call::ExtentIndex(*index)];
  };
  auto* encoded = std::get_if<image::EncodedImage>(&source->source);
  if (encoded != nullptr) set(&encoded->bytes);
  auto* pixels = std::get_if<image::PixelBuffer>(&source->source);
  if (pixels != nullptr) set(&pixels->data);
  auto* tensor = std::get_if<image::InputTensor>(&source->source);
  if (tensor != nullptr) set(&tensor->data);
}

void OwnedPictures::Release() {
  views_ = {};
  owned_ = {};
}

bool IsPicture(absl::string_view body) {
  return base::FormatOf(body).has_value();
}

absl::Status BodyPictures::Read(int max_images, http::HttpRequest* request,
                                server::MemoryBudget* memory,
                                Message* message) {
  const BodyForm form = FormOf(Header(*request, "content-type"), request->body);
  if (form == BodyForm::kPicture || form == BodyForm::kForm) {
    return ReadForm(form == BodyForm::kForm, request, message);
  }
  const absl::Status status = CheckNoQuery(*request);
  if (!status.ok()) return status;
  return form == BodyForm::kJson
             ? ReadJson(std::move(request->body), memory, message)
             : ReadProtobuf(max_images, std::move(request->body), message);
}

absl::Status BodyPictures::ReadForm(bool is_form, http::HttpRequest* request,
                                    Message* message) {
  owned_.push_back(std::move(request->body));
  const absl::string_view body = owned_.front();
  std::vector<FormPart> parts = {{"", true, 0, body.size()}};
  Fields fields = std::move(request->query);
  absl::Status status;
  if (is_form) {
    auto found = FindParts(Header(*request, "content-type"), body);
    if (!found.ok()) return found.status();
    parts = *std::move(found);
    status = TakeFields(body, &parts, &fields);
    if (!status.ok()) return status;
  }
  const auto& type = *message->GetDescriptor();
  const auto& reflection = *message->GetReflection();
  const auto part_of = [&](const char* name) {
    return reflection.MutableMessage(message, type.FindFieldByName(name));
  };
  // The image parameters from the query and the form. All images share them.
  v1::Image common;
  status = SetFromQuery(
      fields, {message, part_of("params"), part_of("options"), &common});
  if (!status.ok()) return status;
  for (const FormPart& part : parts) {
    common.set_encoded(call::IndexBytes(views_.size()));
    views_.push_back(body.substr(part.begin, part.size));
    reflection.AddMessage(message, type.FindFieldByName("images"))
        ->CopyFrom(common);
  }
  count_ = parts.size();
  return absl::OkStatus();
}

absl::Status BodyPictures::ReadProtobuf(int max_images, std::string body,
                                        Message* message) {
  owned_.push_back(std::move(body));
  const absl::string_view whole = owned_.front();
  call::WireRequest wire;
  const absl::Status status =
      call::ReadRequest({whole}, max_images, &wire, message);
  count_ = wire.images;
  if (!status.ok()) return status;
  for (const call::WireExtent& extent : wire.extents) {
    views_.push_back(whole.substr(extent.position, extent.length));
  }
  return absl::OkStatus();
}

absl::Status BodyPictures::ReadJson(std::string body,
                                    server::MemoryBudget* memory,
                                    Message* message) {
  // Parsing needs about as much memory as the JSON. `hold` reserves this memory
  // until this function returns. The prediction later reserves the same amount
  // itself.
  const absl::StatusOr<server::MemoryHold> hold =
      memory->Take(server::MemoryUse::kMessage, body.size());
  if (!hold.ok()) return hold.status();
  const absl::Status status = rest::ReadJson(std::move(body), message);
  if (!status.ok()) return status;
  const auto& fields = *message->GetReflection();
  const auto* images = message->GetDescriptor()->FindFieldByName("images");
  count_ = fields.FieldSize(*message, images);
  for (int i = 0; i < count_; ++i) {
    std::string* const bytes = BytesOf(static_cast<v1::Image*>(
        fields.MutableRepeatedMessage(message, images, i)));
    if (bytes == nullptr) continue;
    const std::string index = call::IndexBytes(owned_.size());
    owned_.push_back(std::exchange(*bytes, index));
  }
  views_ = {owned_.begin(), owned_.end()};
  return absl::OkStatus();
}

std::unique_ptr<call::Pictures> ReadBody(const absl::Status& status,
                                         int max_images,
                                         http::HttpRequest* request,
                                         server::MemoryBudget* memory,
                                         Message* message) {
  return std::make_unique<BodyPictures>(status, max_images, request, memory,
                                        message);
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
  // The first delimiter may be at the start of the body. It then has no line
  // break before it.
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
