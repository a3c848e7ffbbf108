#include "server/repository/model_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/closest_name.h"
#include "server/errors/reasons.h"

namespace sfmamba::repository {

bool IsId(absl::string_view text) {
  const auto is_inner = [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 128 && absl::ascii_isalnum(text[0]) &&
         std::all_of(text.begin(), text.end(), is_inner);
}

int64_t VersionNumber(absl::string_view text) {
  int64_t number = 0;
  // SimpleAtoi() alone would also accept signs and spaces.
  const bool is_decimal =
      !text.empty() && text[0] != '0' &&
      std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  return is_decimal && absl::SimpleAtoi(text, &number) ? number : 0;
}

std::string VersionName(absl::string_view id, int64_t version) {
  return absl::StrCat("models/", id, "/versions/", version);
}

std::string OtherIds(absl::string_view id,
                     const std::vector<std::string>& ids) {
  constexpr size_t kMostListed = 10;
  const std::string closest = base::ClosestName(id, ids);
  if (!closest.empty()) return absl::StrCat(", did you mean \"", closest, "\"");
  if (ids.empty() || ids.size() > kMostListed) return "";
  return absl::StrCat("; there are ", absl::StrJoin(ids, ", "));
}

absl::StatusOr<ModelName> ParseModelName(absl::string_view name,
                                         absl::string_view field) {
  ModelName parsed;
  absl::string_view id = name;
  if (absl::ConsumePrefix(&id, "models/")) {
    const size_t slash = id.find('/');
    if (slash != absl::string_view::npos) {
      absl::string_view rest = id.substr(slash + 1);
      id = id.substr(0, slash);
      if (absl::ConsumePrefix(&rest, "versions/")) {
        parsed.version = VersionNumber(rest);
        if (parsed.version == 0) return server::ModelNotFound(name);
      } else if (absl::ConsumePrefix(&rest, "labels/") && IsId(rest)) {
        parsed.label = std::string(rest);
      } else {
        return server::WrongText(field, name,
                                 "{id}, models/{id}, models/{id}/versions/{n} "
                                 "or models/{id}/labels/{label}");
      }
    }
  }
  if (!IsId(id)) {
    return server::WrongText(field, name,
                             "an id of [A-Za-z0-9][A-Za-z0-9._-]{0,127}");
  }
  parsed.id = std::string(id);
  return parsed;
}

}  // namespace sfmamba::repository
