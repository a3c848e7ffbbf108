#ifndef SFMAMBA_SERVER_REST_KSERVE_REQUEST_H_
#define SFMAMBA_SERVER_REST_KSERVE_REQUEST_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "inference/grpc_service.pb.h"
#include "server/call/call.h"
#include "server/http/exchange.h"
#include "server/rest/kserve/json.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {

// Takes the body of a request to infer and parses it into `message`, an empty
// one, and `outputs`, unless `status` is an error. Its first bytes are JSON, as
// many as the header Inference-Header-Content-Length says. Without the header
// all are. The inputs' binary data follow in their order and stay in the body's
// memory. If the header says 0, the whole body is one picture. So is a body
// without the header that begins as one. At most `max_raw_bytes` of elements
// are taken from the JSON, which holds memory of `memory` while it is read. The
// model's name and version, which the path has, are not set. See
// call::Call::ReadPictures().
//
// INVALID_ARGUMENT as ReadInferJson() says, or if the lengths do not agree.
// RESOURCE_EXHAUSTED if there is no memory.
std::unique_ptr<call::Pictures> ReadInferBody(
    const absl::Status& status, int max_images, int64_t max_raw_bytes,
    http::HttpRequest* request, server::MemoryBudget* memory,
    inference::ModelInferRequest* message, OutputForms* outputs);

// Reads the body of a request about the repository, a JSON object. An empty
// body is an empty object. A RepositoryIndexRequest takes {"ready": true}, a
// RepositoryModelLoadRequest and a RepositoryModelUnloadRequest take
// {"parameters": {"unload_dependents": true}}, where a parameter is a text, a
// whole number or a boolean. Other requests have no body, and it is ignored.
//
// INVALID_ARGUMENT if the body is too large or no object, or if a value is of
// another type.
absl::Status ReadControlBody(const std::string& body,
                             google::protobuf::Message* message);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_REQUEST_H_
