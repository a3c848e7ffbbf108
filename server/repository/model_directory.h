#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_DIRECTORY_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "server/batching/batch_queue.h"
#include "server/repository/model_config.h"
#include "server/repository/version_files.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// One version's folder, read and verified.
struct ModelDirectory {
  model::ModelConfig config;
  bool on_gpus = false;  // Where the model runs.
  batching::BatchOptions batch;
  std::vector<std::string> labels;         // One for each class.
  std::vector<std::string> weights_paths;  // Empty: random weights.
  int64_t weights_size = 0;                // Bytes of all weights_paths.
  // Numbers in all weights_paths; 0 if the files are not of the format.
  int64_t weights_elements = 0;
  // Digest of their bytes in that order, in lower-case hexadecimal.
  std::string weights_sha256;
  // The files that the configuration comes from: "config.textproto",
  // "config.json" or "config.json, config.textproto".
  std::string config_source;
  // The network and the shapes of its weights, on one line: the configuration
  // without its batching, precision and digest. Versions that have the same
  // take the same time.
  std::string network;
  // Facts that the files in Hugging Face's layout contradict.
  std::vector<std::string> warnings;
  // The precision that config.textproto states. If that is AUTO,
  // config.precision is FP32.
  v1::Precision precision = v1::PRECISION_UNSPECIFIED;
  bool allow_int8 = false;  // Whether AUTO may choose INT8 on a CPU.
};

// Reads a version's configuration and labels and verifies its weights.
//
// A version has config.textproto, model.safetensors with the size and sha256
// that it states, and labels.txt; or config.json and model.safetensors (or
// shards of it) as Hugging Face lays them out, whose network and labels are
// those of ReadHuggingFaceConfig(). There config.textproto and labels.txt may
// be missing, and replace what they state. A config.textproto that states both
// a variant and a digest is complete: config.json is not read.
//
// Errors name the file and what was expected, never the path, because clients
// see them. With `random_init` the weights of a config.textproto may be
// missing, and weights_paths is empty then; so may the labels, and are made up.
// The fields that `batching` sets replace the configuration's; the defaults of
// those that neither sets depend on whether the model runs `on_gpus`.
absl::StatusOr<ModelDirectory> ReadModelDirectory(
    const VersionPath& path, bool random_init = false,
    const v1::Batching& batching = {}, bool on_gpus = false);

// What a version's model is asked for.
struct ModelPurpose {
  model::VisionTask task;
  // Among the models of the task, by requests that name none.
  bool is_default = false;
};

// Returns the purpose, by the version's configuration alone; errors as above.
absl::StatusOr<ModelPurpose> ReadPurpose(const VersionPath& path);

// Whether the version's files are all there, and the weights have the size that
// its config.textproto or their own header states: a quick look before
// ReadModelDirectory().
bool LooksComplete(const VersionPath& path, bool random_init = false);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_DIRECTORY_H_
