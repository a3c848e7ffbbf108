#include "server/settings/flags.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/closest_name.h"
#include "server/settings/removed_settings.h"
#include "server/settings/setting.h"

namespace sfmamba::server {
namespace {

using google::protobuf::FieldDescriptor;

// Returns the field that the flag `name` sets, or null if there is no such
// flag.
const FieldDescriptor* FindFlag(const std::string& name) {
  const FieldDescriptor* setting =
      v1::ServerConfig::descriptor()->FindFieldByName(name);
  return setting != nullptr ? setting
                            : v1::Command::descriptor()->FindFieldByName(name);
}

std::vector<std::string> FlagNames() {
  std::vector<std::string> names;
  for (const auto* message :
       {v1::Command::descriptor(), v1::ServerConfig::descriptor()}) {
    for (int i = 0; i < message->field_count(); ++i) {
      names.push_back(message->field(i)->name());
    }
  }
  return names;
}

bool IsBool(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
}

// Returns true if the flag may be repeated to add values.
bool IsTextList(const FieldDescriptor& field) {
  return field.is_repeated() &&
         field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
}

// Returns the placeholder for the flag's value in the help text, for example
// "BYTES" or "auto|cpu|cuda".
std::string Placeholder(const FieldDescriptor& field) {
  const v1::Setting& setting = SettingOf(field);
  if (!setting.placeholder().empty()) return setting.placeholder();
  if (!setting.one_of().empty()) return absl::StrJoin(setting.one_of(), "|");
  if (setting.unit() == "bytes") return "BYTES";
  if (field.is_repeated()) return "N,N";
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return "DURATION";
  return "N";
}

// Returns "--name" for a bool that is false by default, "--name=false" for any
// other bool, and "--name=VALUE" for other types.
std::string Form(const FieldDescriptor& field) {
  if (!IsBool(field)) {
    return absl::StrCat("--", field.name(), "=", Placeholder(field));
  }
  const bool is_true = SettingOf(field).default_() == "true";
  return absl::StrCat("--", field.name(), is_true ? "=false" : "");
}

// Returns " [RANGE, default DEFAULT]". Omits RANGE if there is none or the
// flag's form already lists the values. Omits DEFAULT if it is false or
// missing.
std::string Bounds(const FieldDescriptor& field) {
  std::vector<std::string> parts;
  const std::string range = DescribeRange(field);
  const bool in_form = !SettingOf(field).one_of().empty();
  if (!range.empty() && !in_form) parts.push_back(range);
  const std::string value = DescribeDefault(field);
  if (!value.empty() && value != "false") parts.push_back("default " + value);
  if (parts.empty()) return "";
  return absl::StrCat(" [", absl::StrJoin(parts, ", "), "]");
}

// Wraps the text into lines of at most kColumns columns, with an indent of six
// spaces.
std::string Wrapped(const std::string& text) {
  constexpr size_t kColumns = 88;
  const std::string indent(6, ' ');
  std::string lines, line;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!line.empty() &&
        indent.size() + line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&lines, indent, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return absl::StrCat(lines, indent, line, "\n");
}

// Stores a flag and its value in `command_line`. Returns INVALID_ARGUMENT if
// the value is malformed.
absl::Status Give(const FieldDescriptor& field, const std::string& value,
                  CommandLine* command_line) {
  if (field.containing_type() == v1::Command::descriptor()) {
    return SetFromText(field, value, &command_line->command);
  }
  command_line->settings.emplace_back(&field, value);
  v1::ServerConfig unused;
  return SetFromText(field, value, &unused);
}

}  // namespace

absl::Status ParseFlags(int argc, char** argv, CommandLine* command_line) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    absl::string_view name = argument == "-h" ? "--help" : argument;
    if (!absl::ConsumePrefix(&name, "--")) {
      return absl::InvalidArgumentError(absl::StrCat(
          argument, ": expected a flag, --name=value; --help lists them"));
    }
    const size_t equals = name.find('=');
    std::string value;
    if (equals != absl::string_view::npos) {
      value = std::string(name.substr(equals + 1));
      name = name.substr(0, equals);
    }
    const FieldDescriptor* field = FindFlag(std::string(name));
    if (field == nullptr) {
      const std::string removed = WhyRemoved(name);
      if (!removed.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(argument, ": ", removed));
      }
      const std::string closest = base::ClosestName(name, FlagNames());
      return absl::InvalidArgumentError(absl::StrCat(
          argument, ": there is no such flag",
          closest.empty() ? "; --help lists them"
                          : absl::StrCat(", did you mean --", closest)));
    }
    if (equals == absl::string_view::npos) {
      if (IsBool(*field)) {
        value = "true";
      } else if (i + 1 < argc) {
        value = argv[++i];
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat(argument, ": expected a value"));
      }
    }
    const absl::Status status = Give(*field, value, command_line);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

void ApplyFlags(const CommandLine& command_line, v1::ServerConfig* config) {
  std::set<const FieldDescriptor*> given;
  for (const auto& [field, text] : command_line.settings) {
    v1::ServerConfig one;
    // This cannot fail, because ParseFlags() has already checked the text.
    SetFromText(*field, text, &one).IgnoreError();
    const bool again = !given.insert(field).second;
    if (!again || !IsTextList(*field)) {
      config->GetReflection()->ClearField(config, field);
    }
    config->MergeFrom(one);
  }
}

std::string FlagsHelp() {
  std::string help;
  for (const Topic& topic :
       ByTopic({v1::Command::descriptor(), v1::ServerConfig::descriptor()})) {
    absl::StrAppend(&help, help.empty() ? "" : "\n", topic.title, ":\n");
    for (const FieldDescriptor* field : topic.fields) {
      absl::StrAppend(
          &help, "  ", Form(*field), "\n",
          Wrapped(absl::StrCat(SettingOf(*field).help(), Bounds(*field))));
    }
  }
  return help;
}

}  // namespace sfmamba::server
