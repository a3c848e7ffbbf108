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

// The verified content of a version's folder.
struct ModelDirectory {
  model::ModelConfig config;
  bool on_gpus = false;  // True if the model runs on GPUs.
  batching::BatchOptions batch;
  std::vector<std::string> labels;         // One label for each class.
  std::vector<std::string> weights_paths;  // Empty if the weights are random.
  int64_t weights_size = 0;                // The files' total size in bytes.
  // The total number of elements of all tensors in the files, or 0 if the files
  // have the wrong format.
  int64_t weights_elements = 0;
  // The SHA-256 of the files' bytes in the order of weights_paths, in
  // lower-case hexadecimal.
  std::string weights_sha256;
  // The files that the configuration was read from: "config.textproto",
  // "config.json" or "config.json, config.textproto".
  std::string config_source;
  // The configuration on one line, without batching, precision and SHA-256.
  // Versions with equal lines have the same network and therefore the same
  // batch times.
  std::string network;
  // Warnings for the log, for example about files that contradict each other.
  std::vector<std::string> warnings;
  // The precision that config.textproto states. If it is AUTO or
  // PRECISION_UNSPECIFIED, the member config.precision above is FP32.
  v1::Precision precision = v1::PRECISION_UNSPECIFIED;
  bool allow_int8 = false;  // True if AUTO may choose INT8 on a CPU.
};

// Reads a version's configuration and labels and verifies the weights.
//
// A folder has one of two layouts. In the server's own layout, the folder
// contains config.textproto, labels.txt and model.safetensors. Size and sha256
// of model.safetensors must match config.textproto. In Hugging Face's layout,
// the folder contains config.json and model.safetensors or its shards.
// ReadHuggingFaceConfig() or a function in timm_config.h then reads the network
// and the labels. In this layout, config.textproto and labels.txt are optional.
// Their values have priority over the values of config.json. However,
// config.textproto must not name another model family than config.json. If
// config.textproto contains both a variant and a SHA-256 of the weights,
// config.json is not read.
//
// If `random_init` is true, a version with config.textproto needs neither
// weights nor labels. weights_paths is then empty, and missing labels are
// generated. Fields that are set in `batching` replace the batching fields of
// the configuration. The default of max_batch_size depends on `on_gpus`.
//
// An error names the file but never its path, because clients see errors.
absl::StatusOr<ModelDirectory> ReadModelDirectory(
    const VersionPath& path, bool random_init = false,
    const v1::Batching& batching = {}, bool on_gpus = false);

// The kind of requests that a version's model processes.
struct ModelPurpose {
  model::VisionTask task;
  // True if the model also processes requests for its task that do not name a
  // model.
  bool is_default = false;
};

// Reads only the version's configuration and returns the model's purpose. If
// the configuration cannot be read, returns the same error as
// ReadModelDirectory().
absl::StatusOr<ModelPurpose> ReadPurpose(const VersionPath& path);

// Returns true if all files of the version exist and the weights' files have
// the expected size. The size is stated in config.textproto or in the header of
// the weights' files. If `random_init` is true, weights and labels may be
// missing. Faster than ReadModelDirectory(), because the weights are not read.
bool LooksComplete(const VersionPath& path, bool random_init = false);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_DIRECTORY_H_
