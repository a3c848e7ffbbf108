#include "server/repository/hugging_face_config.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "model/config.h"
#include "nlohmann/json.hpp"
#include "server/repository/version_files.h"

namespace sfmamba::repository {
namespace {

using nlohmann::json;

constexpr char kFamily[] = "mamba_vision_";
constexpr size_t kMostShown = 100;  // Bytes of a value in a message.
constexpr int kMostDepth = 20;      // Levels of objects and lists.

// INVALID_ARGUMENT: member `name` is `got`, or missing if that is null.
absl::Status Refuse(absl::string_view name, const json& got,
                    absl::string_view expected) {
  const std::string text =
      got.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  return absl::InvalidArgumentError(
      absl::StrCat(kHuggingFaceFile, ": ", name, ": got ",
                   got.is_null() ? "none" : text.substr(0, kMostShown),
                   ", expected ", expected));
}

// The members of config.json. The first error is kept; what is missing, or null
// as Python's None, is not one.
class Members {
 public:
  explicit Members(const json& object) : object_(object) {}

  const json& At(const char* name) const {
    static const json* const kMissing = new json;
    const auto found = object_.find(name);
    return found == object_.end() ? *kMissing : *found;
  }

  template <typename T>
  std::optional<T> Number(const char* name) {
    const json& value = At(name);
    if (value.is_null()) return std::nullopt;
    if (IsNumber<T>(value)) return value.get<T>();
    Fail(Refuse(name, value, "a number"));
    return std::nullopt;
  }

  std::optional<std::string> Text(const char* name) {
    const json& value = At(name);
    if (value.is_null()) return std::nullopt;
    if (value.is_string()) return value.get<std::string>();
    Fail(Refuse(name, value, "a string"));
    return std::nullopt;
  }

  // Empty if the member is missing.
  template <typename T>
  std::vector<T> Numbers(const char* name, size_t count) {
    const json& value = At(name);
    if (value.is_null()) return {};
    if (!value.is_array() || value.size() != count ||
        !std::all_of(value.begin(), value.end(), IsNumber<T>)) {
      Fail(Refuse(name, value, absl::StrCat(count, " numbers")));
      return {};
    }
    return value.get<std::vector<T>>();
  }

  void Fail(absl::Status status) { status_.Update(std::move(status)); }
  const absl::Status& status() const { return status_; }

 private:
  template <typename T>
  static bool IsNumber(const json& value) {
    if (!std::is_integral_v<T>) return value.is_number();
    return value.is_number_integer() && value >= 0 && value <= INT32_MAX;
  }

  const json& object_;
  absl::Status status_;
};

// Whether the configuration is of MambaVision, which shapes do not tell from
// SF-Mamba: the auxiliary tokens have no weights.
absl::Status CheckFamily(const Members& members) {
  const json& type = members.At("model_type");
  if (type.is_string()) {
    if (type == "mambavision") return absl::OkStatus();
    return Refuse("model_type", type, "\"mambavision\"");
  }
  for (const char* name : {"architectures", "auto_map"}) {
    for (const json& each : members.At(name)) {
      if (each.is_string() &&
          absl::StrContains(each.get<std::string>(), "MambaVision")) {
        return absl::OkStatus();
      }
    }
  }
  return Refuse("model_type", type,
                absl::StrCat("\"mambavision\", or a ", kConfigFile,
                             " beside it that names backbone.variant"));
}

bool HasShapes(const model::BackboneConfig& row,
               const weights::ClassifierShapes& shapes) {
  return row.dim == shapes.dim && row.in_dim == shapes.in_dim &&
         row.depths == shapes.depths && row.layer_scale == shapes.layer_scale;
}

// The rows of the table that have these shapes.
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

// Rows of the same shapes differ in their windows and in what goes with them.
absl::StatusOr<std::string> ChooseRow(
    const std::vector<model::ModelConfig>& rows,
    const std::vector<int>& windows, const std::string& stated) {
  for (const model::ModelConfig& row : rows) {
    if (row.variant == stated) return stated;
  }
  const auto same = [&rows](const model::ModelConfig& row) {
    return row.backbone.windows == rows[0].backbone.windows;
  };
  if (std::all_of(rows.begin(), rows.end(), same)) return rows[0].variant;
  std::vector<std::string> choices;
  for (const model::ModelConfig& row : rows) {
    const std::array<int, 2>& own = row.backbone.windows;
    if (!windows.empty() && own[0] == windows[2] && own[1] == windows[3]) {
      return row.variant;
    }
    choices.push_back(
        absl::StrCat(row.variant, " (", own[0], ", ", own[1], ")"));
  }
  return Refuse("window_size", windows.empty() ? json() : json(windows),
                absl::StrCat("windows of ", absl::StrJoin(choices, " or ")));
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

// What the file states must be what the weights have.
void CheckShapes(const weights::ClassifierShapes& shapes, Members* members) {
  const auto check = [&](const char* name, const json& expected) {
    const json& got = members->At(name);
    if (got.is_null() || got == expected) return;
    members->Fail(Refuse(
        name, got, absl::StrCat(expected.dump(), ", as the weights have it")));
  };
  check("dim", shapes.dim);
  check("in_dim", shapes.in_dim);
  check("depths", shapes.depths);
}

absl::Status SetBackbone(const weights::ClassifierShapes& shapes,
                         const std::string& stated, Members* members,
                         v1::Backbone* backbone) {
  CheckShapes(shapes, members);
  const std::vector<int> windows = members->Numbers<int>("window_size", 4);
  const std::vector<int> heads = members->Numbers<int>("num_heads", 4);
  if (!members->status().ok()) return members->status();
  const std::vector<model::ModelConfig> rows = MatchingRows(shapes);
  if (rows.empty()) {
    SetCustom(shapes, backbone);
    if (windows.empty()) return Refuse("window_size", json(), "4 numbers");
    if (heads.empty()) return Refuse("num_heads", json(), "4 numbers");
  } else {
    const absl::StatusOr<std::string> row = ChooseRow(rows, windows, stated);
    if (!row.ok()) return row.status();
    backbone->set_variant(*row);
  }
  if (!windows.empty()) {
    backbone->add_windows(windows[2]);
    backbone->add_windows(windows[3]);
  }
  backbone->mutable_num_heads()->Add(heads.begin(), heads.end());
  return absl::OkStatus();
}

// The side of the square input: [3, side, side], [side, side] or the side.
void SetInputSize(Members* members, v1::Input* input) {
  for (const char* name : {"input_size", "image_size", "img_size"}) {
    json value = members->At(name);
    if (value.is_null()) continue;
    if (value.is_array() && value.size() == 3 && value[0] == 3) value.erase(0);
    if (value.is_array() && value.size() == 2 && value[0] == value[1]) {
      value = json(value[0]);
    }
    if (value.is_number_integer() && value > 0 && value <= INT32_MAX) {
      input->set_size(value.get<int>());
    } else {
      members->Fail(
          Refuse(name, members->At(name), "[3, side, side] of a square input"));
    }
    return;
  }
}

void SetInput(Members* members, v1::Input* input) {
  SetInputSize(members, input);
  const std::vector<float> mean = members->Numbers<float>("mean", 3);
  const std::vector<float> std = members->Numbers<float>("std", 3);
  input->mutable_mean()->Add(mean.begin(), mean.end());
  input->mutable_std()->Add(std.begin(), std.end());
  input->set_crop_pct(members->Number<double>("crop_pct").value_or(0));
  const std::optional<std::string> mode = members->Text("crop_mode");
  if (mode == "center") {
    input->set_resize(v1::Input::CENTER_CROP);
  } else if (mode == "squash") {
    input->set_resize(v1::Input::STRETCH);
  } else if (mode.has_value()) {
    members->Fail(Refuse("crop_mode", *mode, "\"center\" or \"squash\""));
  }
  const std::optional<std::string> kernel = members->Text("interpolation");
  if (kernel.value_or("bicubic") != "bicubic") {
    members->Fail(Refuse("interpolation", *kernel, "\"bicubic\""));
  }
}

// The names of all classes, from an object whose members are called "0", "1",
// ...; empty if there is none.
std::vector<std::string> ReadLabels(int classes, Members* members) {
  const json& names = members->At("id2label");
  if (names.is_null()) return {};
  if (!names.is_object() || names.size() != static_cast<size_t>(classes)) {
    members->Fail(Refuse(
        "id2label",
        names.is_object() ? json(absl::StrCat(names.size(), " labels")) : names,
        absl::StrCat("one for each of the ", classes,
                     " rows of head.weight; a ", kLabelsFile,
                     " beside it replaces them")));
    return {};
  }
  std::vector<std::string> labels(classes);
  for (const auto& [id, name] : names.items()) {
    int number = -1;
    if (!absl::SimpleAtoi(id, &number) || number < 0 || number >= classes ||
        !name.is_string()) {
      members->Fail(Refuse("id2label", json{{id, name}},
                           absl::StrCat("labels of 0 to ", classes - 1)));
      return {};
    }
    labels[number] = std::string(
        absl::StripAsciiWhitespace(name.get_ref<const std::string&>()));
  }
  for (int i = 0; i < classes; ++i) {
    if (base::Utf8Length(labels[i]) <= 0) {
      members->Fail(Refuse(absl::StrCat("id2label.", i), labels[i], "a label"));
    }
  }
  return labels;
}

// What a config.textproto says of the family must be what config.json says.
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
    absl::string_view text, const weights::ClassifierShapes& shapes,
    const v1::ModelConfig& stated, bool with_labels) {
  // Writing a value into a message recurses, so deep ones are not taken.
  bool deep = false;
  const json object = json::parse(
      text,
      [&deep](int depth, json::parse_event_t, const json&) {
        deep = deep || depth > kMostDepth;
        return depth <= kMostDepth;
      },
      /*allow_exceptions=*/false);
  if (deep || !object.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kHuggingFaceFile, ": expected a JSON object of at most ",
                     kMostDepth, " levels"));
  }
  Members members(object);
  absl::Status status = CheckFamily(members);
  if (!status.ok()) return status;
  status = CheckStated(stated);
  if (!status.ok()) return status;
  HuggingFaceConfig result;
  result.config.set_task(v1::ModelConfig::CLASSIFICATION);
  status = SetBackbone(shapes, stated.backbone().variant(), &members,
                       result.config.mutable_backbone());
  if (!status.ok()) return status;
  SetInput(&members, result.config.mutable_input());
  result.config.set_num_classes(shapes.num_classes);
  if (with_labels) result.labels = ReadLabels(shapes.num_classes, &members);
  if (!members.status().ok()) return members.status();
  return result;
}

}  // namespace sfmamba::repository
