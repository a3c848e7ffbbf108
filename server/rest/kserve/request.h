#ifndef SFMAMBA_SERVER_REST_KSERVE_REQUEST_H_
#define SFMAMBA_SERVER_REST_KSERVE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/grpc_service.pb.h"
#include "server/rest/kserve/json.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {

// A request to infer, in the words of gRPC.
struct KserveRequest {
  // A ModelInferRequest with raw_input_contents, whose binary data lies in the
  // HTTP body's own memory.
  grpc::ByteBuffer message;
  OutputForms outputs;
};

// Reads the body of a request for this model and version. Its first bytes are
// JSON, as many as `header_length` says, the header
// Inference-Header-Content-Length; without it all are. The inputs' binary data
// follow in their order. If it says 0, the whole body is one picture; so is a
// body without the header that begins as one. At most
// `max_raw_bytes` of elements are taken from the JSON, which holds memory of
// `memory` while it is read.
//
// INVALID_ARGUMENT as ReadInferJson() says, or if the lengths do not agree;
// RESOURCE_EXHAUSTED if there is no memory. What gRPC's messages can say too is
// not checked here.
absl::StatusOr<KserveRequest> ReadKserveRequest(
    absl::string_view model, absl::string_view version,
    std::optional<absl::string_view> header_length, std::string body,
    int64_t max_raw_bytes, server::MemoryBudget* memory);

// These read the body of a request about the repository, a JSON object, in the
// words of gRPC; an empty body is an empty object.
// INVALID_ARGUMENT if it is too large, no object, or if a value is of another
// type.

// {"ready": true}: of all models those alone that are ready.
absl::StatusOr<inference::RepositoryIndexRequest> ReadIndexBody(
    const std::string& body);

// {"parameters": {"unload_dependents": true}}, to load or to unload `model`; a
// parameter is a text, a whole number or a boolean.
absl::StatusOr<inference::RepositoryModelLoadRequest> ReadLoadBody(
    const std::string& model, const std::string& body);
absl::StatusOr<inference::RepositoryModelUnloadRequest> ReadUnloadBody(
    const std::string& model, const std::string& body);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_REQUEST_H_
