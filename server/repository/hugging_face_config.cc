#include "server/repository/hugging_face_config.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/config.h"
#include "nlohmann/json.hpp"
#include "server/repository/hugging_face_input.h"
#include "server/repository/hugging_face_labels.h"
#include "server/repository/hugging_face_members.h"
#include "server/repository/hugging_face_name.h"
#include "server/repository/json_text.h"
#include "server/repository/version_files.h"

namespace sfmamba::repository {
namespace {

using nlohmann::json;

using Levels = std::vector<MemberLevel>;

constexpr char kFamily[] = "mamba_vision_";
// The largest value that is accepted in the lists `window_size` (in tokens) and
// `num_heads` of config.json. The name is misleading, because the values are
// not in pixels.
constexpr int kMostPixels = 16384;

// Reads the family and the variant from the members that contain a model's
// name. Returns INVALID_ARGUMENT if the family is not MambaVision.
absl::StatusOr<NamedModel> ReadNames(const Levels& levels) {
  const Member type = levels[0].At("model_type");
  // Transformers writes model_type "timm_wrapper" for all models of timm, so
  // this value does not identify a family.
  const bool is_typed = type.value.is_string() && type.value != "timm_wrapper";
  NamedModel named;
  for (const char* name : {"model_type", "architectures", "architecture",
                           "arch", "model", "model_name", "auto_map"}) {
    const json value = levels[0].At(name).value;
    for (const json& each : value.is_string() ? json::array({value}) : value) {
      if (!each.is_string()) continue;
      const NamedModel said = ReadModelName(each.get<std::string>());
      const bool is_evidence = !is_typed || value == type.value;
      if (is_evidence && said.is_sf_mamba) named.is_sf_mamba = true;
      if (is_evidence && said.is_mamba_vision) named.is_mamba_vision = true;
      if (named.row.empty()) named.row = said.row;
    }
  }
  // The weights of SF-Mamba have the same shapes as the weights of MambaVision,
  // because SF-Mamba's auxiliary tokens have no weights. Only a name can
  // therefore tell the two families apart.
  if (named.is_sf_mamba) {
    return type.Refuse(
        "MambaVision alone; tools/convert_checkpoint.py converts SF-Mamba");
  }
  if (named.is_mamba_vision) return named;
  return type.Refuse(absl::StrCat(
      "\"mambavision\"", is_typed ? ""
                                  : absl::StrCat(", or a ", kConfigFile,
                                                 " beside it that names "
                                                 "backbone.variant")));
}

bool HasShapes(const model::BackboneConfig& row,
               const weights::ClassifierShapes& shapes) {
  return row.dim == shapes.dim && row.in_dim == shapes.in_dim &&
         row.depths == shapes.depths && row.layer_scale == shapes.layer_scale;
}

// Returns the MambaVision rows of the variant table that have these shapes.
std::vector<model::ModelConfig> MatchingRows(
    const weights::ClassifierShapes& shapes) {
  std::vector<model::ModelConfig> rows;
  if (!shapes.attention || shapes.learnable_tokens) return rows;
  for (const std::string& name : model::VariantNames()) {
    if (!absl::StartsWith(name, kFamily)) continue;
    absl::StatusOr<model::ModelConfig> row = model::VariantConfig(name);
    if (row.ok() && HasShapes(row->backbone, shapes)) {
      rows.push_back(*std::move(row));
    }
  }
  return rows;
}

void Keep(const std::function<bool(const model::ModelConfig&)>& fits,
          std::vector<model::ModelConfig>* rows) {
  if (std::none_of(rows->begin(), rows->end(), fits)) return;
  rows->erase(std::stable_partition(rows->begin(), rows->end(), fits),
              rows->end());
}

bool HaveSameWindows(const std::vector<model::ModelConfig>& rows) {
  return std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
    return row.backbone.windows == rows[0].backbone.windows;
  });
}

std::string Choice(const model::ModelConfig& row) {
  return absl::StrCat(row.variant, " (",
                      absl::StrJoin(row.backbone.windows, ", "), ")");
}

// Returns the variant of one of `rows`. All rows must have the same shapes. If
// their attention windows differ, the row is selected by the first of these
// parameters that matches a row:
// 1. `stated`, the variant in config.textproto
// 2. `windows`, the member `window_size` of config.json
// 3. `named`, the variant that config.json names
// 4. `size`, the side of the input in pixels
// Returns INVALID_ARGUMENT if no parameter matches a row. If `stated` matches a
// row, `windows` is not checked. Otherwise, also returns INVALID_ARGUMENT in
// these cases: `windows` is present but matches no row, or `named` matches a
// row with other windows.
//
// If the attention windows of all rows are equal, only `stated` and `named` can
// select a row. If neither matches a row, returns the variant of the first row.
absl::StatusOr<std::string> ChooseRow(std::vector<model::ModelConfig> rows,
                                      const Member& windows, int size,
                                      const std::string& named,
                                      const std::string& stated) {
  std::vector<std::string> choices;
  for (const model::ModelConfig& row : rows) {
    if (row.variant == stated) return stated;
    choices.push_back(Choice(row));
  }
  const std::string expected =
      absl::StrCat("windows of ", absl::StrJoin(choices, " or "));
  const auto has_windows = [&](const model::ModelConfig& row) {
    return windows.value[2] == row.backbone.windows[0] &&
           windows.value[3] == row.backbone.windows[1];
  };
  if (!HaveSameWindows(rows) && !windows.is_missing()) {
    for (const model::ModelConfig& row : rows) {
      if (row.variant == named && !has_windows(row)) {
        return windows.Refuse(absl::StrCat("windows of ", Choice(row), ", as ",
                                           kHuggingFaceFile, " names it"));
      }
    }
    Keep(has_windows, &rows);
    if (!HaveSameWindows(rows)) return windows.Refuse(expected);
  }
  Keep([&](const model::ModelConfig& row) { return row.variant == named; },
       &rows);
  if (!HaveSameWindows(rows)) {
    Keep([&](const model::ModelConfig& row) { return row.image_size == size; },
         &rows);
  }
  if (!HaveSameWindows(rows)) return windows.Refuse(expected);
  return rows[0].variant;
}

void SetCustom(const weights::ClassifierShapes& shapes,
               v1::Backbone* backbone) {
  backbone->set_variant("custom");
  backbone->set_tokens(v1::Backbone::NONE);
  backbone->set_dim(shapes.dim);
  backbone->set_in_dim(shapes.in_dim);
  for (const int depth : shapes.depths) backbone->add_depths(depth);
  backbone->set_layer_scale(shapes.layer_scale);
  if (!shapes.attention) backbone->set_attention(false);
}

// Checks that `dim`, `in_dim` and `depths` in config.json match the shapes of
// the weights. Missing members are not checked.
absl::Status CheckShapes(const weights::ClassifierShapes& shapes,
                         const Levels& levels) {
  absl::Status status;
  for (const auto& [name, expected] :
       {std::pair<std::string, json>{"dim", shapes.dim},
        {"in_dim", shapes.in_dim},
        {"depths", shapes.depths}}) {
    for (const MemberLevel& level : levels) {
      const Member got = level.At(name);
      if (got.is_missing() || got.value == expected) continue;
      status.Update(got.Refuse(
          absl::StrCat(expected.dump(), ", as the weights have it")));
    }
  }
  return status;
}

absl::Status SetBackbone(const weights::ClassifierShapes& shapes, int size,
                         const std::string& named, const std::string& stated,
                         const Levels& levels, v1::Backbone* backbone) {
  absl::Status status = CheckShapes(shapes, levels);
  const Member windows = FirstOf(levels, "window_size");
  const Member heads = FirstOf(levels, "num_heads");
  for (const Member& member : {windows, heads}) {
    if (!member.is_missing() && !member.IsIntegers(4, 1, kMostPixels)) {
      status.Update(member.Refuse("4 numbers"));
    }
  }
  if (!status.ok()) return status;
  const std::vector<model::ModelConfig> rows = MatchingRows(shapes);
  if (rows.empty()) {
    SetCustom(shapes, backbone);
    if (windows.is_missing()) return windows.Refuse("4 numbers");
    if (heads.is_missing()) return heads.Refuse("4 numbers");
  } else {
    const absl::StatusOr<std::string> row =
        ChooseRow(rows, windows, size, absl::StrCat(kFamily, named), stated);
    if (!row.ok()) return row.status();
    backbone->set_variant(*row);
  }
  if (!windows.is_missing()) {
    backbone->add_windows(windows.value[2].get<int>());
    backbone->add_windows(windows.value[3].get<int>());
  }
  if (!heads.is_missing()) {
    for (const json& number : heads.value) {
      backbone->add_num_heads(number.get<int>());
    }
  }
  return absl::OkStatus();
}

// `stated` is the version's config.textproto. config.json is already known to
// describe a MambaVision classifier. Returns INVALID_ARGUMENT if `stated`
// describes another task or another family.
absl::Status CheckStated(const v1::ModelConfig& stated) {
  const auto refuse = [](absl::string_view field, absl::string_view got,
                         absl::string_view expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        kConfigFile, ": ", field, ": got ", got, ", expected ", expected,
        ", as ", kHuggingFaceFile, " is of MambaVision"));
  };
  if (stated.task() != v1::ModelConfig::TASK_UNSPECIFIED &&
      stated.task() != v1::ModelConfig::CLASSIFICATION) {
    return refuse("task", v1::ModelConfig::Task_Name(stated.task()),
                  "CLASSIFICATION");
  }
  const v1::Backbone& backbone = stated.backbone();
  if (!backbone.variant().empty() && backbone.variant() != "custom" &&
      !absl::StartsWith(backbone.variant(), kFamily)) {
    return refuse("backbone.variant", backbone.variant(),
                  absl::StrCat(kFamily, "..."));
  }
  if (backbone.tokens() != v1::Backbone::TOKENS_UNSPECIFIED &&
      backbone.tokens() != v1::Backbone::NONE) {
    return refuse("backbone.tokens",
                  v1::Backbone::Tokens_Name(backbone.tokens()), "NONE");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HuggingFaceConfig> ReadHuggingFaceConfig(
    const HuggingFaceTexts& texts, const weights::ClassifierShapes& shapes,
    const v1::ModelConfig& stated, bool with_labels) {
  absl::Status status = CheckJsonObject(kHuggingFaceFile, texts.config);
  if (texts.preprocessor.has_value()) {
    status.Update(CheckJsonObject(kPreprocessorFile, *texts.preprocessor));
  }
  if (!status.ok()) return status;
  const json root = json::parse(texts.config);
  const json preprocessor = texts.preprocessor.has_value()
                                ? json::parse(*texts.preprocessor)
                                : json();
  const Levels levels = LevelsOf(root);
  const absl::StatusOr<NamedModel> named = ReadNames(levels);
  if (!named.ok()) return named.status();
  status = CheckStated(stated);
  HuggingFaceConfig result;
  result.config.set_task(v1::ModelConfig::CLASSIFICATION);
  result.config.set_num_classes(shapes.num_classes);
  v1::Input* input = result.config.mutable_input();
  if (status.ok()) {
    status =
        ReadHuggingFaceInput(levels, preprocessor, input, &result.warnings);
  }
  if (status.ok()) {
    status = SetBackbone(shapes, input->size(), named->row,
                         stated.backbone().variant(), levels,
                         result.config.mutable_backbone());
  }
  if (!status.ok()) return status;
  if (with_labels) {
    auto labels = ReadHuggingFaceLabels(shapes.num_classes, levels);
    if (!labels.ok()) return labels.status();
    result.labels = *std::move(labels);
  }
  return result;
}

}  // namespace sfmamba::repository
