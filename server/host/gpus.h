#ifndef SFMAMBA_SERVER_HOST_GPUS_H_
#define SFMAMBA_SERVER_HOST_GPUS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "model/gpus.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// Returns the indices of the GPUs on which models are loaded. The list is empty
// if models run on the CPU. If the config asks for a GPU that is missing or
// unusable, returns FAILED_PRECONDITION. The error lists the found GPUs.
absl::StatusOr<std::vector<int>> ChooseGpus(const v1::ServerConfig& config,
                                            const model::FoundGpus& found);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_GPUS_H_
