#include "server/rest/method_paths.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sfmamba::rest {
namespace {

// Returns all paths that a path template describes. The template may contain
// optional parts, which are written in brackets. The returned paths contain no
// brackets. For example, the template "/v2[/a]" describes the paths "/v2" and
// "/v2/a".
std::vector<std::string> Expand(const std::string& path) {
  const size_t begin = path.rfind('[');
  if (begin == path.npos) return {path};
  const size_t end = path.find(']', begin);
  const std::string before = path.substr(0, begin);
  const std::string after = path.substr(end + 1);
  std::vector<std::string> paths = Expand(before + after);
  const std::string part = path.substr(begin + 1, end - begin - 1);
  for (std::string& one : Expand(before + part + after)) {
    if (!absl::c_linear_search(paths, one)) paths.push_back(std::move(one));
  }
  return paths;
}

}  // namespace

MethodPaths::MethodPaths(const std::vector<call::Method>& methods) {
  for (const call::Method& method : methods) {
    if (method.http.empty()) continue;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(method.http, absl::MaxSplits(' ', 1));
    std::vector<std::string> http_methods = absl::StrSplit(parts.first, ',');
    if (parts.first == "GET") http_methods.push_back("HEAD");
    for (const std::string& path : Expand(parts.second)) {
      rules_.push_back(
          {&method, http_methods, absl::StrSplit(path, absl::ByAnyChar("{}"))});
    }
  }
}

absl::string_view MethodPaths::Rule::Folder() const {
  if (pieces.size() == 1) return "";
  absl::string_view variable = pieces[1];
  if (!absl::ConsumeSuffix(&variable, "**")) return "";
  return variable.substr(variable.find('=') + 1);
}

bool MethodPaths::Rule::Matches(absl::string_view path,
                                PathFields* fields) const {
  if (!absl::ConsumePrefix(&path, pieces[0])) return false;
  for (size_t i = 1; i < pieces.size(); i += 2) {
    const std::pair<absl::string_view, absl::string_view> variable =
        absl::StrSplit(pieces[i], absl::MaxSplits('=', 1));
    absl::string_view value = path;
    // A variable with a pattern, such as {model=models/**}, matches the rest of
    // the path, which may contain slashes. If the template has text after the
    // variable, such as ":classify", the path must end with this text. The text
    // is not a part of the value.
    if (!variable.second.empty()) {
      if (!absl::StartsWith(value, Folder()) ||
          !absl::ConsumeSuffix(&value, pieces[i + 1]) ||
          // If the template has no text after the variable, the value must not
          // contain a colon. The text after a colon would be a verb, such as
          // ":classify".
          (pieces[i + 1].empty() && absl::StrContains(value, ":"))) {
        return false;
      }
      path = "";
    } else {
      value = path.substr(0, path.find('/'));
      path.remove_prefix(value.size());
      if (value.empty() || !absl::ConsumePrefix(&path, pieces[i + 1])) {
        return false;
      }
    }
    fields->emplace_back(std::string(variable.first), std::string(value));
  }
  return path.empty();
}

std::optional<MethodPaths::Match> MethodPaths::Find(
    absl::string_view http_method, absl::string_view path) const {
  std::optional<Match> match;
  std::vector<absl::string_view> allowed;
  for (const Rule& rule : rules_) {
    PathFields fields;
    if (!rule.Matches(path, &fields)) continue;
    const bool is_served =
        absl::c_linear_search(rule.http_methods, http_method);
    if (!match.has_value() || (is_served && !match->is_served)) {
      match = Match{rule.method, std::move(fields), is_served, ""};
    }
    for (const std::string& one : rule.http_methods) {
      if (!absl::c_linear_search(allowed, one)) allowed.push_back(one);
    }
  }
  allowed.push_back("OPTIONS");
  if (match.has_value()) match->allowed = absl::StrJoin(allowed, ", ");
  return match;
}

bool MethodPaths::Covers(absl::string_view path) const {
  return absl::c_any_of(rules_, [path](const Rule& rule) {
    return !rule.Folder().empty() &&
           absl::StartsWith(path, absl::StrCat(rule.pieces[0], rule.Folder()));
  });
}

std::string MethodPaths::Verbs() const {
  std::vector<absl::string_view> verbs;
  for (const Rule& rule : rules_) {
    if (!rule.Folder().empty() && !rule.pieces.back().empty()) {
      verbs.push_back(rule.pieces.back());
    }
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
    if (rule.pieces.size() == 1) {
      paths.emplace_back(absl::StrCat("@", name, "@"), rule.pieces[0]);
    } else if (!rule.Folder().empty()) {
      const std::string model =
          absl::StrCat(rule.pieces[0], rule.Folder(), "{model}");
      paths.emplace_back(absl::StrCat("@", name, "@"),
                         model + rule.pieces.back());
      paths.emplace_back(
          absl::StrCat("@", name, ".version@"),
          absl::StrCat(model, "/versions/{version}", rule.pieces.back()));
    }
  }
  return paths;
}

}  // namespace sfmamba::rest
