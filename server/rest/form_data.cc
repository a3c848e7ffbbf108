#include "server/rest/form_data.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "boost/beast/http/rfc7230.hpp"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

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
