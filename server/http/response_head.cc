#include "server/http/response_head.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "boost/beast/http/status.hpp"

namespace sfmamba::http {
namespace {

bool IsOneLine(const std::string& text) {
  return text.find_first_of(std::string("\r\n\0", 3)) == text.npos;
}

}  // namespace

bool HasBody(int status) { return status != 204 && status != 304; }

std::string ResponseHead(const HttpResponse& response, bool keep_alive,
                         absl::Time now) {
  const boost::beast::string_view reason = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(response.status));
  std::string head = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", std::string(reason), "\r\nDate: ",
      absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone()),
      "\r\n");
  for (const auto& [name, value] : response.headers) {
    if (!IsOneLine(name) || !IsOneLine(value)) continue;
    absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  if (HasBody(response.status)) {
    size_t bytes = 0;
    for (const std::string& piece : response.body) bytes += piece.size();
    absl::StrAppend(&head, "Content-Length: ", bytes, "\r\n");
  }
  absl::StrAppend(&head, "Connection: ", keep_alive ? "keep-alive" : "close",
                  "\r\n\r\n");
  return head;
}

}  // namespace sfmamba::http
