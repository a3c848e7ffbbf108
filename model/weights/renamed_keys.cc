#include "model/weights/renamed_keys.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sfmamba::weights {
namespace {

// Replaces the beginning `from` of a key by `to`. Each '#' in `from` matches
// one or more digits. Each '#' in `to` stands for the digits that a '#' in
// `from` matched, in the same order.
struct Renaming {
  absl::string_view from, to;
};

struct Family {
  // A checkpoint has the names of this family if it contains one of these keys.
  std::vector<absl::string_view> evidence;
  std::vector<Renaming> renamings;  // A key uses the first that fits it.
};

const std::vector<Family>& Families() {
  static const auto& families = *new std::vector<Family>{
      // Names in MambaOut's own repository. timm's checkpoint_filter_fn()
      // renames them in the same way.
      {{"downsample_layers.0.conv1.weight"},
       {{"downsample_layers.0.", "stem."},
        {"downsample_layers.#.", "stages.#.downsample."},
        {"stages.#.#.", "stages.#.blocks.#."},
        {"norm.", "head.norm."},
        {"head.fc1.", "head.pre_logits.fc."},
        {"head.norm.", "head.pre_logits.norm."},
        {"head.fc2.", "head.fc."}}},
      // Names in older files of VMamba, and in VMamba's version for
      // Transformers.
      {{"layers.0.blocks.0.self_attention.A_logs",
        "layers.0.blocks.0.op.A_logs", "vmamba.layers.0.blocks.0.op.A_logs"},
       {{"norm.", "classifier.norm."},
        {"head.", "classifier.head."},
        {"layers.#.blocks.#.ln_1.", "layers.#.blocks.#.norm."},
        {"layers.#.blocks.#.self_attention.", "layers.#.blocks.#.op."},
        {"vmamba.norm.", "classifier.norm."},
        {"vmamba.patch_embeddings.projection.0.", "patch_embed.0."},
        {"vmamba.patch_embeddings.projection.1.", "patch_embed.2."},
        {"vmamba.patch_embeddings.projection.3.", "patch_embed.5."},
        {"vmamba.patch_embeddings.projection.4.", "patch_embed.7."},
        {"vmamba.layers.#.downsample.down.", "layers.#.downsample.1."},
        {"vmamba.layers.#.downsample.norm.", "layers.#.downsample.3."},
        {"vmamba.layers.#.blocks.#.op.x_proj.weight",
         "layers.#.blocks.#.op.x_proj_weight"},
        {"vmamba.layers.#.blocks.#.op.dt_projs.weight",
         "layers.#.blocks.#.op.dt_projs_weight"},
        {"vmamba.layers.#.", "layers.#."}}},
      // Names in older files of VMamba's detectors and segmenters.
      {{"backbone.layers.0.blocks.0.self_attention.A_logs"},
       {{"backbone.layers.#.blocks.#.ln_1.",
         "backbone.layers.#.blocks.#.norm."},
        {"backbone.layers.#.blocks.#.self_attention.",
         "backbone.layers.#.blocks.#.op."}}},
  };
  return families;
}

// Returns the digits at the beginning of `text`.
absl::string_view Digits(absl::string_view text) {
  size_t count = 0;
  while (count < text.size() && absl::ascii_isdigit(text[count])) ++count;
  return text.substr(0, count);
}

// Returns the renamed key. Returns nullopt if the renaming does not fit the
// key.
std::optional<std::string> Renamed(absl::string_view key,
                                   const Renaming& renaming) {
  std::vector<absl::string_view> numbers;
  for (const char c : renaming.from) {
    const absl::string_view found =
        c == '#' ? Digits(key) : key.substr(0, !key.empty() && key[0] == c);
    if (found.empty()) return std::nullopt;
    if (c == '#') numbers.push_back(found);
    key.remove_prefix(found.size());
  }
  std::string renamed;
  size_t next = 0;
  for (const char c : renaming.to) {
    absl::StrAppend(&renamed,
                    c == '#' ? numbers[next++] : absl::string_view(&c, 1));
  }
  return absl::StrCat(renamed, key);
}

std::string Renamed(const std::string& key, const Family& family) {
  for (const Renaming& renaming : family.renamings) {
    const std::optional<std::string> renamed = Renamed(key, renaming);
    if (renamed.has_value()) return *renamed;
  }
  return key;
}

bool HasAny(const std::map<std::string, TensorView>& tensors,
            const std::vector<absl::string_view>& keys) {
  for (const absl::string_view key : keys) {
    if (tensors.count(std::string(key)) > 0) return true;
  }
  return false;
}

}  // namespace

std::map<std::string, TensorView> WithCurrentNames(
    std::map<std::string, TensorView> tensors) {
  for (const Family& family : Families()) {
    if (!HasAny(tensors, family.evidence)) continue;
    std::map<std::string, TensorView> renamed;
    for (const auto& [key, view] : tensors) {
      renamed.emplace(Renamed(key, family), view);
    }
    // If two keys became equal, the keys are not changed. Loading then refuses
    // them.
    if (renamed.size() == tensors.size()) return renamed;
  }
  return tensors;
}

}  // namespace sfmamba::weights
