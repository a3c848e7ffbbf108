#include "server/repository/hugging_face_labels.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/repository/version_files.h"

namespace sfmamba::repository {
namespace {

using nlohmann::json;

// Returns the values of `names` in numerical order. `names` is a list or an
// object with the members "0", "1", .... A value is null if its number is
// missing.
std::vector<const json*> ByNumber(const json& names) {
  std::vector<const json*> by_number(names.size());
  for (const auto& [id, name] : names.items()) {
    size_t number = by_number.size();
    if (absl::SimpleAtoi(id, &number) && number < by_number.size() &&
        id == absl::StrCat(number)) {
      by_number[number] = &name;
    }
  }
  return by_number;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadHuggingFaceLabels(
    int classes, const std::vector<MemberLevel>& levels) {
  Member names = FirstOf(levels, "id2label");
  for (const char* name : {"label_names", "labels"}) {
    if (names.is_missing()) names = FirstOf(levels, name);
  }
  if (names.is_missing()) return std::vector<std::string>();
  // timm's members contain a list or an object. Hugging Face's member id2label
  // must contain an object.
  const bool is_list =
      names.value.is_array() && !absl::EndsWith(names.label, "id2label");
  if ((!is_list && !names.value.is_object()) ||
      names.value.size() != static_cast<size_t>(classes)) {
    if (names.value.is_structured()) {
      names.value = absl::StrCat(names.value.size(), " labels");
    }
    return names.Refuse(absl::StrCat("one for each of the ", classes,
                                     " rows of head.weight; a ", kLabelsFile,
                                     " beside it replaces them"));
  }
  std::vector<std::string> labels;
  for (const json* name : ByNumber(names.value)) {
    const Member label = {absl::StrCat(names.label, ".", labels.size()),
                          name == nullptr ? json() : *name};
    labels.emplace_back(absl::StripAsciiWhitespace(
        label.value.is_string() ? label.value.get_ref<const std::string&>()
                                : ""));
    if (labels.back().empty() ||
        std::any_of(labels.back().begin(), labels.back().end(),
                    absl::ascii_iscntrl)) {
      return label.Refuse("a label");
    }
  }
  return labels;
}

}  // namespace sfmamba::repository
