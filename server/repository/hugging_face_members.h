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

// A member of a JSON file and what errors call it, such as
// "config.json: pretrained_cfg.mean".
struct Member {
  std::string label;
  nlohmann::json value;  // Null if it is missing, or None in Python.

  bool is_missing() const { return value.is_null(); }
  // The value on one line, cut to 100 bytes.
  std::string Shown() const;
  // INVALID_ARGUMENT: "LABEL: got VALUE, expected EXPECTED".
  absl::Status Refuse(absl::string_view expected) const;

  bool IsInteger(int64_t min, int64_t max) const;
  bool IsNumbers(size_t count) const;
  // `count` integers of `min` to `max`.
  bool IsIntegers(size_t count, int64_t min, int64_t max) const;
};

// An object of a file: the file's root or one of its members.
struct MemberLevel {
  std::string label;  // Before a member's name: "config.json: model_args.".
  const nlohmann::json* object;

  Member At(const std::string& name) const;
};

// The levels of a config.json in the order in which they count: the root, and
// timm's "model_args" and "pretrained_cfg". `root` outlives them.
std::vector<MemberLevel> LevelsOf(const nlohmann::json& root);

// The member of the first level that has it.
Member FirstOf(const std::vector<MemberLevel>& levels, const std::string& name);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_HUGGING_FACE_MEMBERS_H_
