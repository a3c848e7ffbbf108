#ifndef SFMAMBA_SERVER_MODEL_SCANS_H_
#define SFMAMBA_SERVER_MODEL_SCANS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "model/tuning/model_scans.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// The scans of the models that a server of this config would load, in batches
// up to each model's largest; none twice. The error names the model.
absl::StatusOr<std::vector<tuning::ScanShape>> ScansOf(
    const v1::ServerConfig& config);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_MODEL_SCANS_H_
