#include "model/weights/checkpoint_keys.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "model/weights/renamed_keys.h"

namespace sfmamba::weights {
namespace {

// Returns the tensors whose keys begin with `prefix`, without this prefix.
std::map<std::string, TensorView> Strip(
    const std::map<std::string, TensorView>& tensors,
    absl::string_view prefix) {
  std::map<std::string, TensorView> stripped;
  for (const auto& [key, view] : tensors) {
    if (absl::StartsWith(key, prefix)) {
      stripped.emplace(key.substr(prefix.size()), view);
    }
  }
  return stripped;
}

}  // namespace

std::map<std::string, TensorView> WithoutPrefixes(
    const std::map<std::string, TensorView>& stored) {
  std::map<std::string, TensorView> tensors;
  for (const auto& [key, view] : stored) {
    tensors.emplace(absl::StrReplaceAll(key, {{"_orig_mod.", ""}}), view);
  }
  // If two keys would become equal, all keys stay unchanged. Loading then
  // fails, because the network has no tensors with "_orig_mod." in their names.
  if (tensors.size() != stored.size()) tensors = stored;
  const auto strip_if_uniform = [&](absl::string_view prefix) {
    std::map<std::string, TensorView> stripped = Strip(tensors, prefix);
    if (stripped.empty()) return false;
    if (prefix == "model.") {
      for (const auto& [key, view] : tensors) {
        if (absl::StartsWith(key, "head.")) stripped.emplace(key, view);
      }
    }
    if (stripped.size() != tensors.size()) return false;
    tensors = std::move(stripped);
    return true;
  };
  // Training wrappers may be nested, so prefixes may come in any order and more
  // than once.
  while (strip_if_uniform("module.") || strip_if_uniform("model.") ||
         strip_if_uniform("backbone.")) {
  }
  // A checkpoint of pretraining contains other networks besides the encoder. It
  // is recognized by its first key, as in MambaVision's own loader.
  constexpr absl::string_view kEncoder = "encoder.";
  if (!tensors.empty() && absl::StartsWith(tensors.begin()->first, kEncoder)) {
    tensors = Strip(tensors, kEncoder);
  }
  return WithCurrentNames(std::move(tensors));
}

}  // namespace sfmamba::weights
