#ifndef SFMAMBA_SERVER_REST_KSERVE_MESSAGE_JSON_H_
#define SFMAMBA_SERVER_REST_KSERVE_MESSAGE_JSON_H_

#include <string>

#include "google/protobuf/message.h"

namespace sfmamba::rest {

// A message as JSON in the way of Open Inference Protocol servers: fields by
// their names in the proto, all numbers as numbers, and values that are not
// set as well, but for messages. protobuf's own JSON has 64-bit numbers as
// strings, which clients of that protocol do not read.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_MESSAGE_JSON_H_
