#ifndef SFMAMBA_SERVER_API_KSERVE_INFER_PARAMETERS_H_
#define SFMAMBA_SERVER_API_KSERVE_INFER_PARAMETERS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/map.h"
#include "inference/grpc_service.pb.h"
#include "server/prediction/prediction_request.h"

namespace sfmamba::kserve {

using ParameterMap =
    google::protobuf::Map<std::string, inference::InferParameter>;

// Returns true if the client of a stream wants an end marker in the last
// response to the request. Triton's C++ client always wants the marker.
bool WantsFinalMark(const inference::ModelInferRequest& request);

// The known parameters of a ModelInferRequest.
struct InferParameters {
  prediction::RequestOptions options;
  std::optional<float> score_threshold;  // Used for detectors only.
};

// Reads the parameters of a request. Returns INVALID_ARGUMENT with reason
// INVALID_FIELD and the parameter's name in these cases:
// - A known parameter has a wrong type or is out of range.
// - A parameter requests a feature that only Triton servers have, such as
//   sequences.
// - The name of an unknown parameter starts with "triton_".
// Ignores all other unknown parameters.
absl::Status ReadParameters(const ParameterMap& map,
                            InferParameters* parameters);

// Reads the parameter `classification` of an output, which is the number of top
// classes to return. Sets 0 if the parameter is missing. If the parameter is
// invalid, returns INVALID_ARGUMENT. The field of the error is
// ".parameters.classification", without the name of the output.
absl::Status ReadOutputParameters(const ParameterMap& map, int* classification);

// Returns the error for every use of Triton's shared memory extensions. The
// error is UNIMPLEMENTED with reason NOT_SUPPORTED.
absl::Status SharedMemoryRemoved();
// Returns SharedMemoryRemoved() if the parameters of an input or output name a
// shared memory region.
absl::Status CheckNoRegion(const ParameterMap& map);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_INFER_PARAMETERS_H_
