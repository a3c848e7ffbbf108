#include "server/rest/method_paths.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sfmamba::rest {
namespace {

constexpr char kReads[] = "GET, HEAD, OPTIONS";
// curl -T sends PUT.
constexpr char kWrites[] = "POST, PUT, OPTIONS";

}  // namespace

MethodPaths::MethodPaths(const std::vector<call::Method>& methods) {
  for (const call::Method& method : methods) {
    if (!method.http.empty()) rules_.push_back(Parse(method));
  }
}

MethodPaths::Rule MethodPaths::Parse(const call::Method& method) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(method.http, absl::MaxSplits(' ', 1));
  Rule rule;
  rule.method = &method;
  rule.is_read = parts.first == "GET";
  const std::vector<std::string> pieces =
      absl::StrSplit(parts.second, absl::ByAnyChar("{=}"));
  rule.before = pieces[0];
  if (pieces.size() == 1) return rule;
  rule.field = pieces[1];
  rule.folder = std::string(absl::StripSuffix(pieces[2], "**"));
  rule.after = pieces[3];
  return rule;
}

bool MethodPaths::Match::Serves(absl::string_view http_method) const {
  const std::vector<absl::string_view> all = absl::StrSplit(allowed, ", ");
  return http_method != "OPTIONS" &&
         std::find(all.begin(), all.end(), http_method) != all.end();
}

std::optional<MethodPaths::Match> MethodPaths::Find(
    absl::string_view path) const {
  for (const Rule& rule : rules_) {
    const char* const allowed = rule.is_read ? kReads : kWrites;
    absl::string_view value = path;
    if (rule.field.empty()) {
      if (path == rule.before) return Match{rule.method, allowed, "", ""};
      continue;
    }
    if (absl::ConsumePrefix(&value, rule.before) &&
        absl::StartsWith(value, rule.folder) &&
        absl::ConsumeSuffix(&value, rule.after) &&
        // Without a verb a colon is no part of a name.
        !(rule.after.empty() && absl::StrContains(value, ":"))) {
      return Match{rule.method, allowed, rule.field, std::string(value)};
    }
  }
  return std::nullopt;
}

bool MethodPaths::Covers(absl::string_view path) const {
  return std::any_of(rules_.begin(), rules_.end(), [path](const Rule& rule) {
    return rule.field.empty()
               ? path == rule.before
               : absl::StartsWith(path, rule.before + rule.folder);
  });
}

std::string MethodPaths::Verbs() const {
  std::vector<absl::string_view> verbs;
  for (const Rule& rule : rules_) {
    if (!rule.after.empty()) verbs.push_back(rule.after);
  }
  if (verbs.empty()) return "none";
  const absl::string_view last = verbs.back();
  verbs.pop_back();
  return absl::StrCat(absl::StrJoin(verbs, ", "), " or ", last);
}

std::vector<std::pair<std::string, std::string>> MethodPaths::OpenApiPaths()
    const {
  std::vector<std::pair<std::string, std::string>> paths;
  for (const Rule& rule : rules_) {
    const std::string name =
        rule.method->name.substr(rule.method->name.find('/') + 1);
    if (rule.field.empty()) {
      paths.emplace_back(absl::StrCat("@", name, "@"), rule.before);
      continue;
    }
    const std::string model = absl::StrCat(rule.before, rule.folder, "{model}");
    paths.emplace_back(absl::StrCat("@", name, "@"), model + rule.after);
    paths.emplace_back(absl::StrCat("@", name, ".version@"),
                       absl::StrCat(model, "/versions/{version}", rule.after));
  }
  return paths;
}

}  // namespace sfmamba::rest
