#ifndef SFMAMBA_SERVER_MODEL_DIRECTORY_H_
#define SFMAMBA_SERVER_MODEL_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/config.h"
#include "server/batch_queue.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba {

// The names of a version's files.
inline constexpr char kConfigFile[] = "config.textproto";
inline constexpr char kWeightsFile[] = "model.safetensors";
inline constexpr char kLabelsFile[] = "labels.txt";

// One version's folder, read and verified.
struct ModelDirectory {
  ModelConfig config;
  BatchOptions batch;
  std::vector<std::string> labels;  // One for each class.
  std::string weights_path;
  int64_t weights_size = 0;    // Bytes.
  std::string weights_sha256;  // Lower-case hexadecimal.
};

// Reads `path`/{config.textproto, labels.txt} and checks that model.safetensors
// has the size and sha256 of the config. The error names the file and what was
// expected, never the path: it is shown to clients. No file may lie outside
// `path`, by a symbolic link for example.
absl::StatusOr<ModelDirectory> ReadModelDirectory(const std::string& path);

// The model's configuration for `classes` labels: the variant's row with the
// fields that are set in place of its values. INVALID_ARGUMENT names the field;
// UNIMPLEMENTED for a task other than classification.
absl::StatusOr<ModelConfig> ToModelConfig(const v1::ModelConfig& proto,
                                          int classes);

absl::StatusOr<BatchOptions> ToBatchOptions(const v1::Batching& proto);

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_MODEL_DIRECTORY_H_
