#include "server/repository/timm_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "model/config.h"
#include "nlohmann/json.hpp"
#include "server/repository/hugging_face_input.h"
#include "server/repository/hugging_face_labels.h"
#include "server/repository/hugging_face_members.h"
#include "server/repository/json_text.h"
#include "server/repository/version_files.h"

namespace sfmamba::repository {
namespace {

using nlohmann::json;

using Levels = std::vector<MemberLevel>;

// The parsed JSON files.
struct Files {
  json config, preprocessor;
  Levels levels;  // The levels point into `config`.
};

absl::Status Parse(const HuggingFaceTexts& texts, Files* files) {
  absl::Status status = CheckJsonObject(kHuggingFaceFile, texts.config);
  if (texts.preprocessor.has_value()) {
    status.Update(CheckJsonObject(kPreprocessorFile, *texts.preprocessor));
  }
  if (!status.ok()) return status;
  files->config = json::parse(texts.config);
  if (texts.preprocessor.has_value()) {
    files->preprocessor = json::parse(*texts.preprocessor);
  }
  files->levels = LevelsOf(files->config);
  return absl::OkStatus();
}

std::vector<model::ModelConfig> RowsOf(model::Architecture architecture) {
  std::vector<model::ModelConfig> rows;
  for (const std::string& name : model::VariantNames()) {
    absl::StatusOr<model::ModelConfig> row = model::VariantConfig(name);
    if (row.ok() && row->backbone.architecture == architecture) {
      rows.push_back(*std::move(row));
    }
  }
  return rows;
}

// Returns a row of the variant table. The row belongs to `family` and is named
// by the member `architecture` of config.json. If this member is missing,
// `stated` names the row. Returns INVALID_ARGUMENT if the two names differ or
// the name is unknown. `fits` returns true if a row has the shapes of the
// weights. The error for an unknown name lists the rows that fit. If no row
// fits, the error lists all rows of `family`.
absl::StatusOr<model::ModelConfig> ChooseRow(
    const Levels& levels, const std::string& stated, model::Architecture family,
    absl::FunctionRef<bool(const model::ModelConfig&)> fits) {
  const Member member = levels[0].At("architecture");
  std::string name = stated;
  if (member.value.is_string()) {
    // A name from timm may end with a dot and the name of a checkpoint, as in
    // "mambaout_tiny.in1k".
    name = member.value.get<std::string>();
    name = name.substr(0, name.find('.'));
  }
  if (!stated.empty() && name != stated) {
    return member.Refuse(
        absl::StrCat("\"", stated, "\", as ", kConfigFile, " has it"));
  }
  std::vector<std::string> all, fitting;
  for (const model::ModelConfig& row : RowsOf(family)) {
    if (row.variant == name) return row;
    all.push_back(row.variant);
    if (fits(row)) fitting.push_back(row.variant);
  }
  return member.Refuse(fitting.empty()
                           ? absl::StrJoin(all, ", ")
                           : absl::StrCat(absl::StrJoin(fitting, " or "),
                                          " by the shapes of the weights"));
}

// Returns a description of the first tensor whose shape differs from the row.
// Returns "" if no tensor differs.
std::string DifferentTensor(const model::MambaOutConfig& row,
                            const weights::MambaOutShapes& shapes) {
  for (int stage = 0; stage < 4; ++stage) {
    const std::string block = absl::StrCat("stages.", stage, ".blocks.0.");
    if (row.widths[stage] != shapes.widths[stage] ||
        row.hidden[stage] != shapes.hidden[stage]) {
      return absl::StrCat(block, "fc2.weight: got [", shapes.widths[stage],
                          ", ", shapes.hidden[stage], "], expected [",
                          row.widths[stage], ", ", row.hidden[stage], "]");
    }
    if (row.conv[stage] != shapes.conv[stage]) {
      return absl::StrCat(block, "conv.weight: got ", shapes.conv[stage],
                          " channels, expected ", row.conv[stage]);
    }
  }
  if (row.rw == shapes.rw) return "";
  return absl::StrCat("stages.0.blocks.0.ls.gamma: got ",
                      shapes.rw ? "one, expected none" : "none, expected one");
}

// Checks that depths, dims, act_layer and global_pool in config.json match the
// row and the weights. Missing members are not checked.
absl::Status CheckArguments(const Levels& levels, const model::ModelConfig& row,
                            const weights::MambaOutShapes& shapes) {
  const char* gate = row.backbone.mamba_out.gate == model::Nonlinearity::kSilu
                         ? "silu"
                         : "gelu";
  absl::Status status;
  const auto check = [&](const char* name, const json& expected,
                         absl::string_view reason) {
    for (const MemberLevel& level : levels) {
      const Member got = level.At(name);
      if (got.is_missing() || got.value == expected) continue;
      status.Update(got.Refuse(absl::StrCat(expected.dump(), reason)));
    }
  };
  check("depths", shapes.depths, ", as the weights have it");
  check("dims", shapes.widths, ", as the weights have it");
  check("act_layer", gate, absl::StrCat(", as ", row.variant, " has it"));
  check("global_pool", "avg", "");
  return status;
}

// Returns the row with these shapes. If there is no such row, takes the first
// row with the same kind of blocks (the same ssm_ratio). The width and the
// depths of the result are then taken from `shapes`.
model::ModelConfig ChooseVMamba(const weights::VMambaShapes& shapes) {
  std::optional<model::ModelConfig> similar;
  for (model::ModelConfig& row : RowsOf(model::Architecture::kVMamba)) {
    const model::BackboneConfig& own = row.backbone;
    if (own.ssm_ratio != shapes.ssm_ratio) continue;
    if (own.dim == shapes.dim && own.depths == shapes.depths) return row;
    if (!similar.has_value()) similar = std::move(row);
  }
  similar->backbone.dim = shapes.dim;
  similar->backbone.depths = shapes.depths;
  return *similar;
}

// Returns INVALID_ARGUMENT if config.json contradicts the weights.
absl::Status CheckVMamba(const Levels& levels,
                         const weights::VMambaShapes& shapes) {
  const MemberLevel& root = levels[0];
  std::vector<int> dims;
  for (int stage = 0; stage < 4; ++stage) dims.push_back(shapes.dim << stage);
  absl::Status status;
  const auto check = [&](const char* name, const std::vector<json>& expected,
                         absl::string_view reason) {
    const Member got = root.At(name);
    if (got.is_missing() ||
        std::count(expected.begin(), expected.end(), got.value) > 0) {
      return;
    }
    status.Update(got.Refuse(absl::StrCat(expected[0].dump(), reason)));
  };
  constexpr absl::string_view kShapes = ", as the weights have it";
  check("model_type", {"vmamba"}, ", as the weights are VMamba's");
  check("depths", {shapes.depths}, kShapes);
  check("dims", {dims, shapes.dim}, kShapes);
  check("embed_dim", {shapes.dim}, kShapes);
  check("patch_size", {4}, "");
  return status;
}

// Returns the configuration of a classifier with the variant of `row`. The
// input settings (size, crop, mean, ...) are read from `files`. If
// `with_labels` is true, the labels are read from `files` too.
absl::StatusOr<HuggingFaceConfig> Describe(const Files& files,
                                           const model::ModelConfig& row,
                                           int num_classes, bool with_labels) {
  HuggingFaceConfig result;
  const absl::Status status =
      ReadHuggingFaceInput(files.levels, files.preprocessor,
                           result.config.mutable_input(), &result.warnings);
  if (!status.ok()) return status;
  result.config.set_task(v1::ModelConfig::CLASSIFICATION);
  result.config.set_num_classes(num_classes);
  result.config.mutable_backbone()->set_variant(row.variant);
  if (!with_labels) return result;
  auto labels = ReadHuggingFaceLabels(num_classes, files.levels);
  if (!labels.ok()) return labels.status();
  result.labels = *std::move(labels);
  return result;
}

}  // namespace

absl::StatusOr<HuggingFaceConfig> ReadMambaOutConfig(
    const HuggingFaceTexts& texts, const weights::MambaOutShapes& shapes,
    const v1::ModelConfig& stated, bool with_labels) {
  Files files;
  absl::Status status = Parse(texts, &files);
  if (!status.ok()) return status;
  const auto row = ChooseRow(
      files.levels, stated.backbone().variant(), model::Architecture::kMambaOut,
      [&](const model::ModelConfig& each) {
        return each.backbone.depths == shapes.depths &&
               DifferentTensor(each.backbone.mamba_out, shapes).empty();
      });
  if (!row.ok()) return row.status();
  const std::string different =
      DifferentTensor(row->backbone.mamba_out, shapes);
  if (!different.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kWeightsFile, ": ", different, ", as ", row->variant, " has it"));
  }
  status = CheckArguments(files.levels, *row, shapes);
  if (!status.ok()) return status;
  absl::StatusOr<HuggingFaceConfig> result =
      Describe(files, *row, shapes.num_classes, with_labels);
  if (result.ok() && row->backbone.depths != shapes.depths) {
    for (const int depth : shapes.depths) {
      result->config.mutable_backbone()->add_depths(depth);
    }
  }
  return result;
}

absl::StatusOr<HuggingFaceConfig> ReadEfficientVimConfig(
    const HuggingFaceTexts& texts, int num_classes,
    const v1::ModelConfig& stated, bool with_labels) {
  Files files;
  const absl::Status status = Parse(texts, &files);
  if (!status.ok()) return status;
  const auto row = ChooseRow(files.levels, stated.backbone().variant(),
                             model::Architecture::kEfficientVim,
                             [](const model::ModelConfig&) { return false; });
  if (!row.ok()) return row.status();
  return Describe(files, *row, num_classes, with_labels);
}

absl::StatusOr<HuggingFaceConfig> ReadVMambaConfig(
    const HuggingFaceTexts& texts, const weights::VMambaShapes& shapes,
    bool with_labels) {
  Files files;
  absl::Status status = Parse(texts, &files);
  if (status.ok()) status = CheckVMamba(files.levels, shapes);
  if (!status.ok()) return status;
  const model::ModelConfig row = ChooseVMamba(shapes);
  absl::StatusOr<HuggingFaceConfig> result =
      Describe(files, row, shapes.num_classes, with_labels);
  const model::BackboneConfig table =
      model::VariantConfig(row.variant)->backbone;
  if (!result.ok()) return result;
  v1::Backbone* const backbone = result->config.mutable_backbone();
  if (table.dim != shapes.dim) backbone->set_dim(shapes.dim);
  if (table.depths != shapes.depths) {
    for (const int depth : shapes.depths) backbone->add_depths(depth);
  }
  return result;
}

}  // namespace sfmamba::repository
