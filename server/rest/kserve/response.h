#ifndef SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_
#define SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_

#include <string>

#include "google/protobuf/message.h"
#include "inference/packed_response.pb.h"
#include "server/http/exchange.h"
#include "server/rest/kserve/request.h"

namespace sfmamba::rest {

// An answer with raw_output_contents as REST has it: JSON, then the outputs
// that come as binary data, which are moved out of `answer`. In the JSON
// numbers have the digits that give the same float again.
http::HttpResponse InferResponse(const OutputForms& forms,
                                 inference::packed::ModelInferResponse* answer);

// JSON that is answered with 200.
http::HttpResponse JsonResponse(std::string json);

// A message as JSON in the way of Open Inference Protocol servers: fields by
// their names in the proto, all numbers as numbers, and values that are not
// set as well, but for messages. protobuf's own JSON has 64-bit numbers as
// strings, which clients of that protocol do not read.
std::string MessageJson(const google::protobuf::Message& message);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_RESPONSE_H_
