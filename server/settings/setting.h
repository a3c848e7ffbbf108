#ifndef SFMAMBA_SERVER_SETTINGS_SETTING_H_
#define SFMAMBA_SERVER_SETTINGS_SETTING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "sfmamba/v1/setting.pb.h"

// Functions that read, by reflection, the options that config.proto states for
// its fields. These options are the only source of a setting's help, default
// and range.
namespace sfmamba::server {

// Returns the options of `field`.
const v1::Setting& SettingOf(const google::protobuf::FieldDescriptor& field);

// The fields of `messages` of one topic, in their order.
struct Topic {
  std::string title;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
};
std::vector<Topic> ByTopic(
    const std::vector<const google::protobuf::Descriptor*>& messages);

// Whether `field` is a message that consists of settings, not a single value.
bool IsGroup(const google::protobuf::FieldDescriptor& field);

// Describes the values that `field` may have, such as "1 to 4096 images" or
// "auto, cpu or cuda". The text is empty if every value of its type is allowed.
std::string DescribeRange(const google::protobuf::FieldDescriptor& field);

// Describes the default, such as "30s" or "the weights', else 256". The text is
// empty if there is none.
std::string DescribeDefault(const google::protobuf::FieldDescriptor& field);

// Sets `field` of `message` to the value that `text` states in the form that
// setting.proto describes. INVALID_ARGUMENT says what was expected; the caller
// puts the field's name before it. The range is not checked.
absl::Status SetFromText(const google::protobuf::FieldDescriptor& field,
                         absl::string_view text,
                         google::protobuf::Message* message);

// Sets the unset fields that have a default. A number without presence counts
// as unset if it is 0. Groups are not entered.
void SetDefaults(google::protobuf::Message* message);

// Returns INVALID_ARGUMENT if a field, also inside groups, is set to a value
// out of its range. The error names the first such field, with got and
// expected.
absl::Status CheckRanges(const google::protobuf::Message& message);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_SETTING_H_
