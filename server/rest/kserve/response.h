#ifndef SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_
#define SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_

#include <string>

#include "google/protobuf/message.h"
#include "server/http/exchange.h"
#include "server/rest/kserve/json.h"

namespace sfmamba::rest {

// Writes a method's response, OK, as REST has it. It may take the contents of
// `message`. A packed::ModelInferResponse is JSON, then the outputs that come
// as binary data. In the JSON numbers have the digits that give the same float
// again. A server or a model that is not live or not ready is answered with
// 400. `model` is the model that the path names.
http::HttpResponse KserveResponse(const OutputForms& forms,
                                  const std::string& model,
                                  google::protobuf::Message* message);

// Writes a message as JSON in the way of Open Inference Protocol servers:
// fields by their names in the proto, all numbers as numbers, and fields that
// are not set too, except messages. protobuf's own JSON has 64-bit numbers as
// strings, which clients of that protocol do not read.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_
