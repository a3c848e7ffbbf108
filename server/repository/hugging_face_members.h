#ifndef SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_MEMBERS_H_
#define SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_MEMBERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace sfmamba::repository {

// A member of a JSON file. `label` names the member in error messages, for
// example as "config.json: pretrained_cfg.mean".
struct Member {
  std::string label;
  nlohmann::json value;  // Null if the member is missing or has the value null.

  bool is_missing() const { return value.is_null(); }
  // Returns the value on one line, cut to 100 bytes.
  std::string Shown() const;
  // Returns INVALID_ARGUMENT with the message "LABEL: got VALUE, expected
  // EXPECTED".
  absl::Status Refuse(absl::string_view expected) const;

  bool IsInteger(int64_t min, int64_t max) const;
  bool IsNumbers(size_t count) const;
  // Returns true if the value is a list of `count` integers from `min` to
  // `max`.
  bool IsIntegers(size_t count, int64_t min, int64_t max) const;
};

// An object of a JSON file. The object is the root or one of the root's
// members.
struct MemberLevel {
  // Prefix of a member's name, such as "config.json: model_args.".
  std::string label;
  const nlohmann::json* object;

  Member At(const std::string& name) const;
};

// Returns the objects of config.json in the order of their priority: the root,
// "model_args" and "pretrained_cfg". Only timm writes the last two. `root` is
// the parsed config.json and must outlive the result.
std::vector<MemberLevel> LevelsOf(const nlohmann::json& root);

// Returns the member from the first level that contains the member. If no level
// contains it, is_missing() of the result is true.
Member FirstOf(const std::vector<MemberLevel>& levels, const std::string& name);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_MEMBERS_H_
