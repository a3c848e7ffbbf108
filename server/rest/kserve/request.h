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

// Parses the body of an inference request into `message`, which must be empty,
// and `outputs`. `status` is the result of earlier checks, for example of the
// headers. If `status` is an error, nothing is parsed and the status() of the
// returned object is this error. See call::Call::ReadPictures().
//
// The header Inference-Header-Content-Length is the size of the JSON at the
// start of the body. The binary data of the inputs follow the JSON in order and
// stay in the body's memory. If the header is 0, the whole body is one picture.
// If the header is missing, the whole body is one picture or JSON, depending on
// its first bytes.
//
// The elements in the JSON may have at most `max_raw_bytes` bytes. Parsing
// reserves memory from `memory`. The model's name and version are in the path
// and are not set here.
//
// The status() of the returned object may be an error of ReadInferJson(), or
// one of these errors:
// - INVALID_ARGUMENT: the header is not a number or exceeds the size of the
//   body.
// - INVALID_ARGUMENT: the binary data after the JSON have a different size than
//   the inputs state in `binary_data_size`.
// - RESOURCE_EXHAUSTED: not enough memory is available.
std::unique_ptr<call::Pictures> ReadInferBody(
    const absl::Status& status, int max_images, int64_t max_raw_bytes,
    http::HttpRequest* request, server::MemoryBudget* memory,
    inference::ModelInferRequest* message, OutputForms* outputs);

// Parses the JSON body of a request about the model repository. An empty body
// is equal to an empty object. Only one member of the object is read. The
// member depends on the type of the request:
// - RepositoryIndexRequest: {"ready": true}.
// - RepositoryModelLoadRequest and RepositoryModelUnloadRequest: {"parameters":
//   {"unload_dependents": true}}. A parameter is a string, an integer or a
//   boolean.
// The body of all other requests is ignored.
//
// Returns INVALID_ARGUMENT if the body is too large, is not an object, or has a
// value of the wrong type.
absl::Status ReadControlBody(const std::string& body,
                             google::protobuf::Message* message);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_REQUEST_H_
