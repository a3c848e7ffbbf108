#ifndef SFMAMBA_SERVER_SETTINGS_SETTING_H_
#define SFMAMBA_SERVER_SETTINGS_SETTING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "sfmamba/v1/setting.pb.h"

// The functions in this header set message fields from text. The help, default
// and range of each setting are field options in config.proto and
// server_config.proto. The functions read these options by reflection.
namespace sfmamba::server {

const v1::Setting& SettingOf(const google::protobuf::FieldDescriptor& field);

// A topic of the help text, with the settings of this topic in the order of
// their declaration.
struct Topic {
  std::string title;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
};
// Returns the topics that have fields in `messages`.
std::vector<Topic> ByTopic(
    const std::vector<const google::protobuf::Descriptor*>& messages);

// Returns true if `field` is a group, which is a message with settings of its
// own. A duration is a message, too, but counts as a single value.
bool IsGroup(const google::protobuf::FieldDescriptor& field);

// Describes the allowed values of `field`, such as "1 to 4096 images" or "auto,
// cpu or cuda". Returns "" if every value of the type is allowed.
std::string DescribeRange(const google::protobuf::FieldDescriptor& field);

// Describes the default of `field`, such as "30s". If the default is computed,
// the result describes the computation, for example "three eighths of
// memory_budget_bytes". Returns "" if there is no default.
std::string DescribeDefault(const google::protobuf::FieldDescriptor& field);

// Sets `field` of `message` to the value in `text`. setting.proto describes the
// format. An empty `text` clears a list. Returns INVALID_ARGUMENT if `text` is
// malformed. The error describes the expected form. The error does not contain
// the field's name, which the caller adds. Does not check the range.
absl::Status SetFromText(const google::protobuf::FieldDescriptor& field,
                         absl::string_view text,
                         google::protobuf::Message* message);

// Sets `field` like SetFromText(). If `field` is a list, however, appends to
// the list instead of replacing it. For a list of strings, `text` is one
// element, which may be empty and may contain commas. For all other lists, an
// empty `text` is an error.
absl::Status AddFromText(const google::protobuf::FieldDescriptor& field,
                         absl::string_view text,
                         google::protobuf::Message* message);

// Sets every unset field that has a default. A number field that is not
// declared `optional` counts as unset if its value is 0. Nested groups are not
// changed.
void SetDefaults(google::protobuf::Message* message);

// Returns INVALID_ARGUMENT if a field is out of range. Fields inside groups are
// checked too. The error contains the first invalid field, its value and the
// expected values.
absl::Status CheckRanges(const google::protobuf::Message& message);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_SETTING_H_
