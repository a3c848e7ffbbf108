#include "client/commands/output/message_json.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"

namespace sfmamba::client {

std::string MessageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails only for messages that contain an Any of unknown type.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return absl::StrCat(json, "\n");
}

}  // namespace sfmamba::client
