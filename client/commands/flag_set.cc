#include "client/commands/flag_set.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/closest_name.h"

namespace sfmamba::client {
namespace {

// Parses `text` into the variable. Returns false if `text` is not a value of
// the variable's type. The whole text must be a value. For example, "8x" is not
// a number.
struct Setter {
  const std::string& text;

  bool operator()(std::string* value) const {
    *value = text;
    return true;
  }
  bool operator()(int* value) const { return absl::SimpleAtoi(text, value); }
  bool operator()(int64_t* value) const {
    return absl::SimpleAtoi(text, value);
  }
  bool operator()(double* value) const {
    return absl::SimpleAtod(text, value) && std::isfinite(*value);
  }
  bool operator()(absl::optional<double>* value) const {
    return (*this)(&value->emplace());
  }
  bool operator()(bool* value) const { return absl::SimpleAtob(text, value); }
  bool operator()(absl::Duration* value) const {
    return absl::ParseDuration(text, value);
  }
};

struct Formatter {
  std::string operator()(const std::string* value) const { return *value; }
  std::string operator()(const int* value) const {
    return absl::StrCat(*value);
  }
  std::string operator()(const int64_t* value) const {
    return absl::StrCat(*value);
  }
  std::string operator()(const double* value) const {
    return absl::StrCat(*value);
  }
  std::string operator()(const absl::optional<double>* value) const {
    return value->has_value() ? absl::StrCat(**value) : "";
  }
  std::string operator()(const bool*) const { return ""; }
  std::string operator()(const absl::Duration* value) const {
    return absl::FormatDuration(*value);
  }
};

struct TypeName {
  const char* operator()(const std::string*) const { return "a text"; }
  const char* operator()(const int*) const { return "a whole number"; }
  const char* operator()(const int64_t*) const { return "a whole number"; }
  const char* operator()(const double*) const { return "a number"; }
  const char* operator()(const absl::optional<double>*) const {
    return "a number";
  }
  const char* operator()(const bool*) const { return "true or false"; }
  const char* operator()(const absl::Duration*) const {
    return "a duration such as 500ms, 10s or 1m30s";
  }
};

bool IsBool(const FlagSet::Target& target) {
  return absl::holds_alternative<bool*>(target);
}

}  // namespace

FlagSet::FlagSet(absl::string_view usage, absl::string_view description)
    : usage_(usage), description_(description) {}

void FlagSet::Add(absl::string_view name, absl::string_view placeholder,
                  absl::string_view help, Target target) {
  flags_.push_back({std::string(name), std::string(placeholder),
                    std::string(help), absl::visit(Formatter(), target),
                    target});
}

const FlagSet::Flag* FlagSet::Find(absl::string_view name) const {
  const auto found =
      std::find_if(flags_.begin(), flags_.end(),
                   [name](const Flag& flag) { return flag.name == name; });
  return found == flags_.end() ? nullptr : &*found;
}

absl::StatusOr<std::vector<std::string>> FlagSet::Parse(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> positional;
  for (auto argument = arguments.begin(); argument != arguments.end();
       ++argument) {
    if (*argument == "--") {
      positional.insert(positional.end(), argument + 1, arguments.end());
      break;
    }
    if (argument->size() < 2 || argument->front() != '-') {
      positional.push_back(*argument);
      continue;
    }
    const size_t dashes = absl::StartsWith(*argument, "--") ? 2 : 1;
    const size_t equals = argument->find('=');
    const std::string name = argument->substr(
        dashes, equals == std::string::npos ? equals : equals - dashes);
    if (name == "help" || name == "h") {
      help_requested_ = true;
      continue;
    }
    const Flag* const flag = Find(name);
    if (flag == nullptr) {
      std::vector<std::string> names;
      for (const Flag& known : flags_) names.push_back(known.name);
      const std::string closest = base::ClosestName(name, names);
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown flag '", *argument, "'",
          closest.empty() ? "" : absl::StrCat(", did you mean --", closest)));
    }
    std::string value;
    if (equals != std::string::npos) {
      value = argument->substr(equals + 1);
    } else if (IsBool(flag->target)) {
      value = "true";
    } else if (argument + 1 != arguments.end()) {
      value = *++argument;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " needs a value"));
    }
    if (!absl::visit(Setter{value}, flag->target)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", name, ": expected ", absl::visit(TypeName(), flag->target),
          ", got '", value, "'"));
    }
  }
  for (const auto& check : checks_) {
    const absl::Status status = help_requested_ ? absl::OkStatus() : check();
    if (!status.ok()) return status;
  }
  return positional;
}

std::string FlagSet::Help() const {
  std::string text =
      absl::StrCat("usage: ", usage_, "\n\n", description_, "\n\nflags:\n");
  std::vector<std::string> names;
  size_t width = 0;
  for (const Flag& flag : flags_) {
    names.push_back(IsBool(flag.target)
                        ? absl::StrCat("--", flag.name)
                        : absl::StrCat("--", flag.name, " ", flag.placeholder));
    width = std::max(width, names.back().size());
  }
  for (size_t i = 0; i < flags_.size(); ++i) {
    absl::StrAppendFormat(&text, "  %-*s  %s", width, names[i], flags_[i].help);
    if (!flags_[i].default_value.empty()) {
      absl::StrAppend(&text, " (default ", flags_[i].default_value, ")");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace sfmamba::client
