#ifndef SFMAMBA_CLIENT_COMMANDS_OUTPUT_MESSAGE_JSON_H_
#define SFMAMBA_CLIENT_COMMANDS_OUTPUT_MESSAGE_JSON_H_

#include <string>

#include "google/protobuf/message.h"

namespace sfmamba::client {

// Returns a message as one line of JSON. Keys are the names of its fields, and
// fields that are zero are included. The message must not contain an Any.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_OUTPUT_MESSAGE_JSON_H_
