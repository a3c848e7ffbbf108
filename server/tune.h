#ifndef SFMAMBA_SERVER_TUNE_H_
#define SFMAMBA_SERVER_TUNE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "model/scan_shapes.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba {

// The scans of the models that a server of this config would load, in batches
// up to each model's largest; none twice. The error names the model.
absl::StatusOr<std::vector<ScanShape>> ScansOf(const v1::ServerConfig& config);

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_TUNE_H_
