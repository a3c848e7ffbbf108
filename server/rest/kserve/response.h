#ifndef SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_
#define SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_

#include <string>

#include "google/protobuf/message.h"
#include "server/http/exchange.h"
#include "server/rest/kserve/json.h"

namespace sfmamba::rest {

// Returns the response of a successful call in REST format. May move the
// contents out of `message`. A packed::ModelInferResponse becomes JSON,
// followed by the binary outputs. Numbers in JSON have enough digits to restore
// the same float. If `message` says that a server or model is not live or not
// ready, the status is 400. `model` is the model name in the path.
http::HttpResponse KserveResponse(const OutputForms& forms,
                                  const std::string& model,
                                  google::protobuf::Message* message);

// Returns a message as JSON in the format of Open Inference Protocol servers.
// Fields have their proto names. All numbers are JSON numbers, because clients
// of this protocol do not accept 64-bit numbers as strings. Unset fields are
// included, except for messages.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_
