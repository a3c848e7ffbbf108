#include "server/repository/model_directory.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/utf8.h"
#include "model/weights/safetensors.h"
#include "server/base/sha256.h"
#include "server/base/textproto.h"
#include "server/repository/class_names.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 1 << 20;
constexpr size_t kMaxLabelsBytes = 16 << 20;

// The file `name` of the folder, wherever links lead, which must be inside.
absl::StatusOr<std::string> FileInside(const std::string& folder,
                                       const char* name) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  const fs::path file = fs::canonical(root / name, error);
  if (error || !fs::is_regular_file(file, error)) {
    return absl::NotFoundError(absl::StrCat(name, ": there is no such file"));
  }
  if (file.parent_path() != root) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": lies outside the version's folder"));
  }
  return file.string();
}

absl::StatusOr<v1::ModelConfig> ReadConfig(const std::string& path) {
  absl::StatusOr<std::string> text =
      server::ReadTextFile(kConfigFile, path, kMaxConfigBytes);
  if (!text.ok()) return text.status();
  v1::ModelConfig proto;
  const absl::Status status =
      server::ParseTextProto(kConfigFile, *text, &proto);
  if (!status.ok()) return status;
  return proto;
}

absl::StatusOr<std::vector<std::string>> ReadLabels(const std::string& path) {
  absl::StatusOr<std::string> text =
      server::ReadTextFile(kLabelsFile, path, kMaxLabelsBytes);
  if (!text.ok()) return text.status();
  std::vector<std::string> labels =
      absl::StrSplit(absl::StripSuffix(*text, "\n"), '\n');
  for (size_t i = 0; i < labels.size(); ++i) {
    absl::StripTrailingAsciiWhitespace(&labels[i]);
    if (labels[i].empty() || base::Utf8Length(labels[i]) < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(kLabelsFile, ": line ", i + 1,
                       " is empty or not UTF-8, expected a label"));
    }
  }
  return labels;
}

absl::Status CheckWeights(const v1::Weights& expected,
                          const std::string& path) {
  const auto mismatch = [](absl::string_view what, auto got, auto expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(kWeightsFile, ": ", what, ": got ", got, ", expected ",
                     expected, " by ", kConfigFile));
  };
  std::error_code error;
  const int64_t size = fs::file_size(path, error);
  if (error || size != expected.size_bytes()) {
    return mismatch("size in bytes", size, expected.size_bytes());
  }
  absl::StatusOr<std::string> digest = server::FileSha256(path);
  if (!digest.ok()) {
    return absl::DataLossError(absl::StrCat(
        kWeightsFile, ": got a file that cannot be read, expected ",
        expected.size_bytes(), " bytes by ", kConfigFile));
  }
  const std::string wanted = absl::AsciiStrToLower(expected.sha256());
  if (*digest != wanted) return mismatch("sha256", *digest, wanted);
  return absl::OkStatus();
}

// What the file's header says of the model, if that is for a dense task.
absl::StatusOr<weights::WeightShapes> ReadShapes(model::VisionTask task,
                                                 const std::string& path) {
  if (task == model::VisionTask::kClassification || path.empty()) {
    return weights::WeightShapes();
  }
  absl::StatusOr<std::unique_ptr<weights::SafetensorsFile>> file =
      weights::SafetensorsFile::Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<weights::WeightShapes> shapes =
      weights::ReadWeightShapes((*file)->tensors());
  if (!shapes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kWeightsFile, ": ", shapes.status().message()));
  }
  return shapes;
}

// What ModelDirectory::network says of `proto`.
std::string NetworkOf(v1::ModelConfig proto) {
  proto.clear_batching();
  proto.clear_precision();
  proto.mutable_weights()->clear_sha256();
  return proto.ShortDebugString();
}

// The same error, of kConfigFile.
absl::Status OfConfig(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(kConfigFile, ": ", status.message()));
}

}  // namespace

absl::StatusOr<ModelPurpose> ReadPurpose(const std::string& path) {
  const absl::StatusOr<std::string> file = FileInside(path, kConfigFile);
  if (!file.ok()) return file.status();
  const absl::StatusOr<v1::ModelConfig> proto = ReadConfig(*file);
  if (!proto.ok()) return proto.status();
  return ModelPurpose{ToTask(proto->task()), proto->default_for_task()};
}

absl::StatusOr<ModelDirectory> ReadModelDirectory(
    const std::string& path, bool random_init, const v1::Batching& batching) {
  const char* const names[3] = {kConfigFile, kLabelsFile, kWeightsFile};
  std::string files[3];
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<std::string> file = FileInside(path, names[i]);
    if (file.ok()) {
      files[i] = *std::move(file);
    } else if (i == 0 || !random_init || !absl::IsNotFound(file.status())) {
      return file.status();
    }
  }
  absl::StatusOr<v1::ModelConfig> proto = ReadConfig(files[0]);
  if (!proto.ok()) return proto.status();
  proto->mutable_batching()->MergeFrom(batching);

  ModelDirectory directory;
  if (!files[1].empty()) {
    absl::StatusOr<std::vector<std::string>> labels = ReadLabels(files[1]);
    if (!labels.ok()) return labels.status();
    directory.labels = *std::move(labels);
  }
  const model::VisionTask task = ToTask(proto->task());
  const absl::StatusOr<weights::WeightShapes> shapes =
      ReadShapes(task, files[2]);
  if (!shapes.ok()) return shapes.status();
  absl::StatusOr<model::ModelConfig> config =
      ToModelConfig(*proto, directory.labels.size(), *shapes);
  if (!config.ok()) return OfConfig(config.status());
  directory.config = *std::move(config);
  if (directory.labels.empty()) {
    directory.labels = ClassNames(task, directory.config.num_classes);
  }
  directory.batch = ToBatchOptions(proto->batching(), task);
  directory.precision = proto->precision();
  proto->set_num_classes(directory.config.num_classes);
  directory.network = NetworkOf(*proto);
  if (files[2].empty()) return directory;
  const absl::Status status = CheckWeights(proto->weights(), files[2]);
  if (!status.ok()) return status;
  directory.weights_path = files[2];
  directory.weights_size = proto->weights().size_bytes();
  directory.weights_sha256 = absl::AsciiStrToLower(proto->weights().sha256());
  return directory;
}

bool LooksComplete(const std::string& path, bool random_init) {
  const absl::StatusOr<std::string> file = FileInside(path, kConfigFile);
  if (!file.ok()) return false;
  const absl::StatusOr<v1::ModelConfig> config = ReadConfig(*file);
  if (!config.ok()) return false;
  const absl::StatusOr<std::string> weights = FileInside(path, kWeightsFile);
  if (!weights.ok()) return random_init;
  std::error_code error;
  const auto size = static_cast<int64_t>(fs::file_size(*weights, error));
  return !error && size == config->weights().size_bytes() &&
         (random_init || FileInside(path, kLabelsFile).ok());
}

}  // namespace sfmamba::repository
