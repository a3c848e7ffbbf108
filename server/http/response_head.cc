#include "server/http/response_head.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace sfmamba::http {
namespace {

// RFC 9110, section 15. Clients do not need it.
const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

bool IsOneLine(const std::string& text) {
  return text.find_first_of(std::string("\r\n\0", 3)) == text.npos;
}

}  // namespace

bool HasBody(int status) { return status != 204 && status != 304; }

std::string ResponseHead(const HttpResponse& response, bool keep_alive,
                         absl::Time now) {
  std::string head = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
      "\r\nDate: ",
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
