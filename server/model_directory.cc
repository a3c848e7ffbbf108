#include "server/model_directory.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/repeated_field.h"
#include "server/convert.h"
#include "server/sha256.h"
#include "server/textproto.h"
#include "server/utf8.h"

namespace sfmamba {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 1 << 20;
constexpr size_t kMaxLabelsBytes = 16 << 20;

// Copies `from`, which must have as many values as `to` or none.
template <typename From, typename To>
absl::Status Override(absl::string_view field,
                      const google::protobuf::RepeatedField<From>& from,
                      To* to) {
  if (from.empty()) return absl::OkStatus();
  if (static_cast<size_t>(from.size()) != to->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, ": got ", from.size(), " values, expected ", to->size()));
  }
  std::copy(from.begin(), from.end(), to->begin());
  return absl::OkStatus();
}

absl::Status OverrideBackbone(const v1::Backbone& proto,
                              BackboneConfig* backbone) {
  if (proto.dim() != 0) backbone->dim = proto.dim();
  if (proto.in_dim() != 0) backbone->in_dim = proto.in_dim();
  if (proto.has_layer_scale()) backbone->layer_scale = proto.layer_scale();
  if (proto.has_swap()) backbone->swap = proto.swap();
  if (proto.has_attention()) backbone->attention = proto.attention();
  switch (proto.tokens()) {
    case v1::Backbone::NONE:
      backbone->tokens = Tokens::kNone;
      break;
    case v1::Backbone::DATA:
      backbone->tokens = Tokens::kData;
      break;
    case v1::Backbone::LEARNABLE:
      backbone->tokens = Tokens::kLearnable;
      break;
    default:
      break;
  }
  switch (proto.discard()) {
    case v1::Backbone::BEFORE_ATTN:
      backbone->discard = Discard::kBeforeAttention;
      break;
    case v1::Backbone::AFTER_FIRST_ATTN:
      backbone->discard = Discard::kAfterFirstAttention;
      break;
    case v1::Backbone::AFTER_ATTN:
      backbone->discard = Discard::kAfterAttention;
      break;
    default:
      break;
  }
  switch (proto.scan()) {
    case v1::Backbone::UNI:
      backbone->scan = ScanMode::kUni;
      break;
    case v1::Backbone::SERIES:
      backbone->scan = ScanMode::kSeries;
      break;
    case v1::Backbone::SERIES_GAP:
      backbone->scan = ScanMode::kSeriesGap;
      break;
    case v1::Backbone::PARALLEL_CAT:
      backbone->scan = ScanMode::kParallelCat;
      break;
    case v1::Backbone::PARALLEL_ADD:
      backbone->scan = ScanMode::kParallelAdd;
      break;
    case v1::Backbone::PARALLEL_ADD_VIM:
      backbone->scan = ScanMode::kParallelAddVim;
      break;
    default:
      break;
  }
  switch (proto.window_mode()) {
    case v1::Backbone::FIXED:
      backbone->window_mode = WindowMode::kFixed;
      break;
    case v1::Backbone::FULL:
      backbone->window_mode = WindowMode::kFull;
      break;
    default:
      break;
  }
  absl::Status status =
      Override("backbone.depths", proto.depths(), &backbone->depths);
  status.Update(
      Override("backbone.num_heads", proto.num_heads(), &backbone->num_heads));
  status.Update(
      Override("backbone.windows", proto.windows(), &backbone->windows));
  status.Update(Override("backbone.attention_windows",
                         proto.attention_windows(),
                         &backbone->attention_windows));
  return status;
}

absl::Status OverrideInput(const v1::Input& proto, ModelConfig* config) {
  if (proto.size() != 0) config->image_size = proto.size();
  if (proto.crop_pct() != 0) config->crop_pct = proto.crop_pct();
  if (proto.resize() == v1::Input::CENTER_CROP) {
    config->resize = Resize::kCenterCrop;
  }
  if (proto.resize() == v1::Input::STRETCH) config->resize = Resize::kStretch;
  absl::Status status = Override("input.mean", proto.mean(), &config->mean);
  status.Update(Override("input.std", proto.std(), &config->std));
  return status;
}

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

absl::StatusOr<std::vector<std::string>> ReadLabels(const std::string& path) {
  absl::StatusOr<std::string> text =
      ReadTextFile(kLabelsFile, path, kMaxLabelsBytes);
  if (!text.ok()) return text.status();
  std::vector<std::string> labels =
      absl::StrSplit(absl::StripSuffix(*text, "\n"), '\n');
  for (size_t i = 0; i < labels.size(); ++i) {
    absl::StripTrailingAsciiWhitespace(&labels[i]);
    if (labels[i].empty() || Utf8Length(labels[i]) < 0) {
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
  absl::StatusOr<std::string> digest = FileSha256(path);
  if (!digest.ok()) {
    return absl::DataLossError(absl::StrCat(kWeightsFile, ": cannot be read"));
  }
  const std::string wanted = absl::AsciiStrToLower(expected.sha256());
  if (*digest != wanted) return mismatch("sha256", *digest, wanted);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> ToModelConfig(const v1::ModelConfig& proto,
                                          int classes) {
  if (proto.task() != v1::ModelConfig::TASK_UNSPECIFIED &&
      proto.task() != v1::ModelConfig::CLASSIFICATION) {
    return absl::UnimplementedError(
        absl::StrCat("task: got ", v1::ModelConfig::Task_Name(proto.task()),
                     ", expected CLASSIFICATION"));
  }
  absl::StatusOr<ModelConfig> config =
      VariantConfig(proto.backbone().variant());
  if (!config.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("backbone.variant: ", config.status().message()));
  }
  absl::Status status = OverrideBackbone(proto.backbone(), &config->backbone);
  status.Update(OverrideInput(proto.input(), &*config));
  if (!status.ok()) return status;
  config->num_classes =
      proto.num_classes() != 0 ? proto.num_classes() : classes;
  if (config->num_classes != classes) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_classes: got ", config->num_classes, ", expected ",
                     classes, ", the lines of ", kLabelsFile));
  }
  if (proto.precision() == v1::BF16) config->precision = Precision::kBFloat16;
  status = Validate(*config);
  if (!status.ok()) return status;
  return config;
}

absl::StatusOr<BatchOptions> ToBatchOptions(const v1::Batching& proto) {
  const auto refuse = [](absl::string_view field, auto got) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batching.", field, ": got ", got, ", expected a positive value"));
  };
  BatchOptions options;
  options.max_batch_size = 32;
  if (proto.max_batch_size() < 0 || proto.max_batch_size() > 4096) {
    return refuse("max_batch_size", proto.max_batch_size());
  }
  if (proto.max_batch_size() > 0) {
    options.max_batch_size = proto.max_batch_size();
  }
  if (proto.has_max_queue_delay()) {
    options.max_queue_delay = FromProto(proto.max_queue_delay());
    if (options.max_queue_delay < absl::ZeroDuration()) {
      return refuse("max_queue_delay",
                    absl::FormatDuration(options.max_queue_delay));
    }
  }
  if (proto.max_queue_items() < 0) {
    return refuse("max_queue_items", proto.max_queue_items());
  }
  if (proto.max_queue_items() > 0) {
    options.max_queue_items = proto.max_queue_items();
  }
  if (proto.max_queue_bytes() < 0) {
    return refuse("max_queue_bytes", proto.max_queue_bytes());
  }
  if (proto.max_queue_bytes() > 0) {
    options.max_queue_bytes = proto.max_queue_bytes();
  }
  return options;
}

absl::StatusOr<ModelDirectory> ReadModelDirectory(const std::string& path) {
  std::string files[3];
  const char* const names[3] = {kConfigFile, kLabelsFile, kWeightsFile};
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<std::string> file = FileInside(path, names[i]);
    if (!file.ok()) return file.status();
    files[i] = *std::move(file);
  }
  absl::StatusOr<std::string> text =
      ReadTextFile(kConfigFile, files[0], kMaxConfigBytes);
  if (!text.ok()) return text.status();
  v1::ModelConfig proto;
  absl::Status status = ParseTextProto(kConfigFile, *text, &proto);
  if (!status.ok()) return status;

  ModelDirectory directory;
  absl::StatusOr<std::vector<std::string>> labels = ReadLabels(files[1]);
  if (!labels.ok()) return labels.status();
  directory.labels = *std::move(labels);
  absl::StatusOr<ModelConfig> config =
      ToModelConfig(proto, directory.labels.size());
  if (!config.ok()) {
    return absl::Status(
        config.status().code(),
        absl::StrCat(kConfigFile, ": ", config.status().message()));
  }
  directory.config = *std::move(config);
  absl::StatusOr<BatchOptions> batch = ToBatchOptions(proto.batching());
  if (!batch.ok()) {
    return absl::Status(
        batch.status().code(),
        absl::StrCat(kConfigFile, ": ", batch.status().message()));
  }
  directory.batch = *batch;
  status = CheckWeights(proto.weights(), files[2]);
  if (!status.ok()) return status;
  directory.weights_path = files[2];
  directory.weights_size = proto.weights().size_bytes();
  directory.weights_sha256 = absl::AsciiStrToLower(proto.weights().sha256());
  return directory;
}

}  // namespace sfmamba
