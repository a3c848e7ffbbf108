#ifndef SFMAMBA_SERVER_BASE_SETTING_H_
#define SFMAMBA_SERVER_BASE_SETTING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "sfmamba/v1/setting.pb.h"

// What config.proto states beside its fields, put to use by reflection: the
// only source of a setting's help, default and range.
namespace sfmamba::server {

// What stands beside `field`.
const v1::Setting& SettingOf(const google::protobuf::FieldDescriptor& field);

// Whether `field` is a message of settings, not a value.
bool IsGroup(const google::protobuf::FieldDescriptor& field);

// The values that `field` may have, such as "1 to 4096 images" or "auto, cpu or
// cuda". Empty: any of its type.
std::string DescribeRange(const google::protobuf::FieldDescriptor& field);

// Such as "30s" or "the weights', else 256". Empty: there is none.
std::string DescribeDefault(const google::protobuf::FieldDescriptor& field);

// Replaces the value of `field` in `message` by what `text` says, in the form
// that setting.proto describes. INVALID_ARGUMENT says what was expected, for a
// message that begins with the field's name. The range is not checked.
absl::Status SetFromText(const google::protobuf::FieldDescriptor& field,
                         absl::string_view text,
                         google::protobuf::Message* message);

// Sets the fields that are unset and have a default; a number without presence
// is unset at 0. Does not look into groups.
void SetDefaults(google::protobuf::Message* message);

// INVALID_ARGUMENT naming the first field that is set to a value out of its
// range, with got and expected. Looks into groups.
absl::Status CheckRanges(const google::protobuf::Message& message);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_BASE_SETTING_H_
