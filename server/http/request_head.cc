#include "server/http/request_head.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sfmamba::http {
namespace {

constexpr absl::string_view kEnd = "\r\n\r\n";

bool IsUnserved(absl::string_view name) {
  for (const char* unserved :
       {"Range", "If-Range", "Expect", "Content-Encoding"}) {
    if (absl::EqualsIgnoreCase(name, unserved)) return true;
  }
  return false;
}

// Whether the header says that a body follows.
bool AnnouncesBody(absl::string_view name, absl::string_view value) {
  if (absl::EqualsIgnoreCase(name, "Transfer-Encoding")) return true;
  uint64_t length = 0;
  return absl::EqualsIgnoreCase(name, "Content-Length") &&
         (!absl::SimpleAtoi(value, &length) || length > 0);
}

}  // namespace

RequestHead ReadHead(absl::string_view bytes, size_t max_bytes) {
  RequestHead head;
  const size_t end = bytes.find(kEnd);
  if (end == absl::string_view::npos || end + kEnd.size() > max_bytes) {
    if (bytes.size() >= max_bytes) head.status = 431;
    return head;
  }
  head.status = 400;
  bool is_first = true;
  std::string text;
  for (absl::string_view line : absl::StrSplit(bytes.substr(0, end), "\r\n")) {
    if (absl::StrContains(line, '\n') || absl::StrContains(line, '\0')) {
      return head;
    }
    if (!std::exchange(is_first, false)) {
      const size_t colon = line.find(':');
      if (colon == 0 || colon == absl::string_view::npos ||
          absl::ascii_isspace(line[0])) {
        return head;
      }
      const absl::string_view name = line.substr(0, colon);
      if (AnnouncesBody(name, line.substr(colon + 1))) {
        head.status = 413;
        return head;
      }
      if (IsUnserved(name)) continue;
    }
    absl::StrAppend(&text, line, "\r\n");
  }
  head.status = 200;
  head.text = absl::StrCat(text, "\r\n");
  return head;
}

}  // namespace sfmamba::http
