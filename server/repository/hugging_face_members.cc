#include "server/repository/hugging_face_members.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/repository/version_files.h"

namespace sfmamba::repository {

using nlohmann::json;

std::string Member::Shown() const {
  constexpr size_t kMostShown = 100;
  if (is_missing()) return "none";
  return value
      .dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace)
      .substr(0, kMostShown);
}

absl::Status Member::Refuse(absl::string_view expected) const {
  return absl::InvalidArgumentError(
      absl::StrCat(label, ": got ", Shown(), ", expected ", expected));
}

bool Member::IsInteger(int64_t min, int64_t max) const {
  return value.is_number_integer() && value >= min && value <= max;
}

bool Member::IsNumbers(size_t count) const {
  return value.is_array() && value.size() == count &&
         std::all_of(value.begin(), value.end(),
                     [](const json& each) { return each.is_number(); });
}

bool Member::IsIntegers(size_t count, int64_t min, int64_t max) const {
  return value.is_array() && value.size() == count &&
         std::all_of(value.begin(), value.end(), [&](const json& each) {
           return Member{"", each}.IsInteger(min, max);
         });
}

Member MemberLevel::At(const std::string& name) const {
  const auto found = object->find(name);
  return {label + name, found == object->end() ? json() : *found};
}

std::vector<MemberLevel> LevelsOf(const json& root) {
  const std::string file = absl::StrCat(kHuggingFaceFile, ": ");
  std::vector<MemberLevel> levels = {{file, &root}};
  for (const char* name : {"model_args", "pretrained_cfg"}) {
    const auto found = root.find(name);
    if (found == root.end() || !found->is_object()) continue;
    levels.push_back({absl::StrCat(file, name, "."), &*found});
  }
  return levels;
}

Member FirstOf(const std::vector<MemberLevel>& levels,
               const std::string& name) {
  for (const MemberLevel& level : levels) {
    Member member = level.At(name);
    if (!member.is_missing()) return member;
  }
  return levels.front().At(name);
}

}  // namespace sfmamba::repository
