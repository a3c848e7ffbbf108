#include "server/http/request_head.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/http/request_target.h"

namespace sfmamba::http {
namespace {

constexpr size_t kMostQuoted = 60;

Refusal Bad(absl::string_view what, absl::string_view got) {
  return {400, absl::StrCat(what, ", got \"",
                            absl::CHexEscape(got.substr(0, kMostQuoted)),
                            got.size() > kMostQuoted ? "...\"" : "\"")};
}

bool IsTokenCharacter(char c) {
  return absl::ascii_isalnum(c) || absl::StrContains("!#$%&'*+-.^_`|~", c);
}

bool IsToken(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), IsTokenCharacter);
}

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(c);
  });
}

std::optional<Refusal> ParseRequestLine(absl::string_view line,
                                        RequestHead* head) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !IsToken(words[0]) ||
      !absl::StartsWith(words[2], "HTTP/")) {
    return Bad("expected a line METHOD TARGET HTTP/1.1", line);
  }
  const absl::string_view version = words[2].substr(5);
  if (version != "1.1" && version != "1.0") {
    return Refusal{505, Bad("expected HTTP/1.1 or HTTP/1.0", words[2]).message};
  }
  head->keep_alive = version == "1.1";
  head->request.method = std::string(words[0]);
  if (!ParseTarget(words[1], &head->request.path, &head->request.query)) {
    return Bad(
        "expected a target of visible ASCII without encoded control "
        "characters",
        words[1]);
  }
  return std::nullopt;
}

std::optional<Refusal> ParseHeader(absl::string_view line, RequestHead* head) {
  const size_t colon = std::min(line.find(':'), line.size());
  const absl::string_view name = line.substr(0, colon);
  if (colon == line.size() || !IsToken(name)) {
    return Bad("expected a header NAME: VALUE on one line", line);
  }
  head->request.headers.emplace(
      absl::AsciiStrToLower(name),
      absl::StripAsciiWhitespace(line.substr(colon + 1)));
  return std::nullopt;
}

// The values of a header that is a list, in lower case.
std::vector<std::string> ListOf(const HttpRequest& request,
                                const std::string& name) {
  std::vector<std::string> values;
  const auto [begin, end] = request.headers.equal_range(name);
  for (auto it = begin; it != end; ++it) {
    for (absl::string_view value : absl::StrSplit(it->second, ',')) {
      values.push_back(
          absl::AsciiStrToLower(absl::StripAsciiWhitespace(value)));
    }
  }
  return values;
}

std::optional<Refusal> ReadLength(bool is_http11, RequestHead* head) {
  const auto lengths = ListOf(head->request, "content-length");
  const auto codings = ListOf(head->request, "transfer-encoding");
  if (lengths.size() + codings.size() > 1) {
    return Bad("expected one Content-Length or Transfer-Encoding",
               absl::StrCat(absl::StrJoin(lengths, ", "), "; ",
                            absl::StrJoin(codings, ", ")));
  }
  if (!codings.empty()) {
    if (!is_http11) {
      return Bad("expected no Transfer-Encoding in HTTP/1.0", codings[0]);
    }
    if (codings[0] != "chunked") {
      return Refusal{
          501, Bad("expected Transfer-Encoding chunked", codings[0]).message};
    }
    head->is_chunked = true;
  }
  if (!lengths.empty()) {
    if (!IsDigits(lengths[0])) {
      return Bad("expected a number as Content-Length", lengths[0]);
    }
    // What overflows is larger than any limit.
    if (!absl::SimpleAtoi(lengths[0], &head->body_bytes)) {
      head->body_bytes = std::numeric_limits<int64_t>::max();
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> ParseHead(absl::string_view text, RequestHead* head) {
  absl::ConsumeSuffix(&text, "\r\n\r\n");
  bool is_first = true;
  for (absl::string_view line : absl::StrSplit(text, "\r\n")) {
    std::optional<Refusal> refusal = std::exchange(is_first, false)
                                         ? ParseRequestLine(line, head)
                                         : ParseHeader(line, head);
    if (refusal.has_value()) return refusal;
  }
  const bool is_http11 = head->keep_alive;
  if (head->request.headers.count("host") > 1) {
    return Refusal{400, "expected one Host, got several"};
  }
  for (const std::string& option : ListOf(head->request, "connection")) {
    if (option == "close") {
      head->keep_alive = false;
      break;
    }
    if (option == "keep-alive") head->keep_alive = true;
  }
  if (auto refusal = ReadLength(is_http11, head)) return refusal;
  for (const std::string& expected : ListOf(head->request, "expect")) {
    if (expected != "100-continue") {
      return Refusal{417,
                     Bad("expected Expect: 100-continue", expected).message};
    }
    head->expects_continue = is_http11;
  }
  return std::nullopt;
}

}  // namespace sfmamba::http
