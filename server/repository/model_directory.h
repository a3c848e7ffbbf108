#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_DIRECTORY_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "server/batching/batch_queue.h"
#include "server/repository/model_config.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// One version's folder, read and verified.
struct ModelDirectory {
  model::ModelConfig config;
  batching::BatchOptions batch;
  std::vector<std::string> labels;  // One for each class.
  std::string weights_path;         // Empty: random weights.
  int64_t weights_size = 0;         // Bytes.
  std::string weights_sha256;       // Lower-case hexadecimal.
  // The network and the shapes of its weights, on one line: config.textproto
  // without its batching, precision and digest. Versions that have the same
  // take the same time.
  std::string network;
  // As config.textproto says; config.precision is FP32 where it is AUTO.
  v1::Precision precision = v1::PRECISION_UNSPECIFIED;
};

// Reads `path`/{config.textproto, labels.txt} and checks that model.safetensors
// has the size and sha256 of the config. The error names the file and what was
// expected, never the path: it is shown to clients. No file may lie outside
// `path`, by a symbolic link for example. With `random_init` the weights may be
// missing, and weights_path is empty then; so may the labels, and are made up.
// What `batching` sets takes the place of the config's.
absl::StatusOr<ModelDirectory> ReadModelDirectory(
    const std::string& path, bool random_init = false,
    const v1::Batching& batching = {});

// What a version's model is asked for.
struct ModelPurpose {
  model::VisionTask task;
  // Among the models of the task, by requests that name none.
  bool is_default = false;
};

// The purpose, by the version's config.textproto alone; errors as above.
absl::StatusOr<ModelPurpose> ReadPurpose(const std::string& path);

// Whether the version's files are all there, and the weights have the size that
// its config.textproto says: a quick look before ReadModelDirectory().
bool LooksComplete(const std::string& path, bool random_init = false);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_DIRECTORY_H_
