#ifndef SFMAMBA_SERVER_HOST_GPUS_H_
#define SFMAMBA_SERVER_HOST_GPUS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "model/gpus.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// The devices that models are loaded on; none: the CPU. FAILED_PRECONDITION,
// naming what was found, if the config asks for one that is not there.
absl::StatusOr<std::vector<int>> ChooseGpus(const v1::ServerConfig& config,
                                            const model::FoundGpus& found);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_GPUS_H_
