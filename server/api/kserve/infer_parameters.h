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

// Returns whether a stream's client asks for a mark in the last answer to the
// request. The C++ client always does.
bool WantsFinalMark(const inference::ModelInferRequest& request);

// What the parameters of a ModelInferRequest ask for.
struct InferParameters {
  prediction::RequestOptions options;
  std::optional<float> score_threshold;  // For detectors.
};

// Returns INVALID_ARGUMENT, INVALID_FIELD, naming the parameter, if a known
// parameter has a value of another type or out of range, or if a parameter asks
// for a feature that only a Triton server has: sequences, or a name that begins
// with "triton_". Other parameters are ignored.
absl::Status ReadParameters(const ParameterMap& map,
                            InferParameters* parameters);

// Reads how many classes an output's parameter `classification` asks for. 0 if
// the output has no such parameter. INVALID_ARGUMENT, with a field relative to
// the output (".parameters.x").
absl::Status ReadOutputParameters(const ParameterMap& map, int* classification);

// UNIMPLEMENTED with reason NOT_SUPPORTED: the answer to every request for
// Triton's extensions of shared memory.
absl::Status SharedMemoryRemoved();
// Returns SharedMemoryRemoved() if an input's or output's parameters name a
// region.
absl::Status CheckNoRegion(const ParameterMap& map);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_INFER_PARAMETERS_H_
