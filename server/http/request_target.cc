#include "server/http/request_target.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "httplib.h"

namespace sfmamba::http {
namespace {

bool HasControl(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_iscntrl(c); });
}

// cpp-httplib's own Server reads a value with a "=" in it wrongly.
std::string Decode(absl::string_view text, bool plus_is_space) {
  return httplib::detail::decode_url(std::string(text), plus_is_space);
}

// "http://host:1/a?b" becomes "/a?b".
absl::string_view WithoutHost(absl::string_view target) {
  absl::string_view rest = target;
  if (!absl::ConsumePrefix(&rest, "http://") &&
      !absl::ConsumePrefix(&rest, "https://")) {
    return target;
  }
  const size_t end = rest.find_first_of("/?");
  return end == rest.npos ? "/" : rest.substr(end);
}

}  // namespace

bool ParseTarget(absl::string_view target, std::string* path,
                 std::multimap<std::string, std::string>* query) {
  if (target.empty() || !std::all_of(target.begin(), target.end(), [](char c) {
        return absl::ascii_isgraph(c);
      })) {
    return false;
  }
  target = WithoutHost(target.substr(0, target.find('#')));
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  *path = Decode(parts.first, /*plus_is_space=*/false);
  if (HasControl(*path)) return false;
  for (absl::string_view field :
       absl::StrSplit(parts.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    query->emplace(Decode(pair.first, /*plus_is_space=*/true),
                   Decode(pair.second, /*plus_is_space=*/true));
  }
  return true;
}

}  // namespace sfmamba::http
