#ifndef SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_
#define SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_

#include <string>

#include "google/protobuf/message.h"
#include "server/http/exchange.h"
#include "server/rest/kserve/json.h"

namespace sfmamba::rest {

// Returns the response of a successful call in REST format. `model` is the
// model name in the path. May move the contents out of `message`.
//
// A packed::ModelInferResponse becomes JSON, followed by the binary outputs.
// Numbers in JSON have enough digits to restore the same float.
//
// The HTTP status is 200, except for a negative answer to a probe. A call that
// asks whether the server or a model is live or ready succeeds even if the
// answer is no. For this answer, the HTTP status is 400.
http::HttpResponse KserveResponse(const OutputForms& forms,
                                  const std::string& model,
                                  google::protobuf::Message* message);

// Returns a message as JSON in the format of Open Inference Protocol servers.
// Fields have their proto names. All numbers are JSON numbers, because clients
// of this protocol do not accept 64-bit numbers as strings. Unset fields are
// included with their default values. However, unset fields of a message type
// and unset members of a oneof are left out.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_
