#ifndef SFMAMBA_CLIENT_COMMANDS_OUTPUT_MESSAGE_JSON_H_
#define SFMAMBA_CLIENT_COMMANDS_OUTPUT_MESSAGE_JSON_H_

#include <string>

#include "google/protobuf/message.h"

namespace sfmamba::client {

// A message, which holds no Any, as one line of JSON with the names of its
// fields and with those that are zero.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_OUTPUT_MESSAGE_JSON_H_
