#include "model/weights/state_dict.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "ATen/ops/all.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/isfinite.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "c10/core/ScalarType.h"
#include "model/weights/checkpoint_keys.h"

namespace sfmamba::weights {
namespace {

constexpr size_t kMaxReported = 20;

std::string ShapeString(at::IntArrayRef shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

bool IsIgnored(const std::string& key) {
  return absl::EndsWith(key, "num_batches_tracked") ||
         absl::StartsWith(key, "auxiliary_head.");
}

bool EndsWithAny(absl::string_view key,
                 std::initializer_list<absl::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](absl::string_view end) {
    return absl::EndsWith(key, end);
  });
}

// Returns whether `stored` is `shape` followed by `count` ones.
bool HasTrailingOnes(const std::vector<int64_t>& stored, at::IntArrayRef shape,
                     size_t count) {
  return stored.size() == shape.size() + count &&
         shape == at::IntArrayRef(stored).slice(0, shape.size()) &&
         std::all_of(stored.begin() + shape.size(), stored.end(),
                     [](int64_t size) { return size == 1; });
}

// Returns whether a tensor of shape `stored` can be used if the model expects
// `shape`.
bool Fits(const std::string& key, const std::vector<int64_t>& stored,
          at::IntArrayRef shape) {
  if (shape == stored) return true;
  // The authors of EfficientViM store LayerNorms as [1, C, 1] or [1, C, 1, 1].
  if (shape.size() == 1 && (stored.size() == 3 || stored.size() == 4) &&
      stored[0] == 1 && stored[1] == shape[0] &&
      std::all_of(stored.begin() + 2, stored.end(),
                  [](int64_t size) { return size == 1; })) {
    return true;
  }
  // VMamba's version for Transformers joins the projections of all directions.
  if (EndsWithAny(key, {".op.x_proj_weight", ".op.dt_projs_weight"}) &&
      shape.size() == 3 && stored.size() == 2) {
    return stored[0] == shape[0] * shape[1] && stored[1] == shape[2];
  }
  // In VMamba, some linear layers are stored as 1x1 convolutions.
  if (EndsWithAny(key, {".op.in_proj.weight", ".op.out_proj.weight",
                        ".mlp.fc1.weight", ".mlp.fc2.weight"}) &&
      HasTrailingOnes(stored, shape, 2)) {
    return true;
  }
  // Some checkpoints store dt's projection as a convolution with one tap.
  return absl::EndsWith(key, "dt_proj.weight") &&
         HasTrailingOnes(stored, shape, 1);
}

// Returns libtorch's type for `dtype`. Returns nullopt if parameters may not
// have this type.
absl::optional<c10::ScalarType> FloatType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return c10::kFloat;
    case DType::kF16:
      return c10::kHalf;
    case DType::kBF16:
      return c10::kBFloat16;
    default:
      return absl::nullopt;
  }
}

// Returns a copy in fp32. FloatType() must support the type of `view`.
at::Tensor CopyToFloat(const TensorView& view) {
  at::Tensor stored = at::empty(view.shape, *FloatType(view.dtype));
  if (!view.data.empty()) {
    std::memcpy(stored.data_ptr(), view.data.data(), view.data.size());
  }
  return stored.to(c10::kFloat);
}

}  // namespace

StateDict::Scope StateDict::Scope::Sub(absl::string_view name) const {
  return Scope(dict_, absl::StrCat(prefix_, name, "."), device_);
}

at::Tensor StateDict::Scope::Take(absl::string_view key,
                                  at::IntArrayRef shape) const {
  return dict_->Take(absl::StrCat(prefix_, key), shape).to(device_);
}

StateDict::StateDict(const std::map<std::string, TensorView>& tensors)
    : stored_(WithoutPrefixes(tensors)) {}

StateDict::StateDict(Generator generate) : generate_(std::move(generate)) {}

at::Tensor StateDict::Take(const std::string& key, at::IntArrayRef shape) {
  if (generate_) return generate_(key, shape);
  taken_.insert(key);
  const auto it = stored_.find(key);
  if (it == stored_.end()) {
    errors_.push_back(
        absl::StrCat(key, ": missing, expected ", ShapeString(shape)));
  } else if (!Fits(key, it->second.shape, shape)) {
    errors_.push_back(absl::StrCat(key, ": expected ", ShapeString(shape),
                                   ", got ", ShapeString(it->second.shape)));
  } else if (!FloatType(it->second.dtype).has_value()) {
    errors_.push_back(absl::StrCat(key, ": expected F32, F16 or BF16, got ",
                                   DTypeName(it->second.dtype)));
  } else {
    const at::Tensor values = CopyToFloat(it->second).view(shape);
    if (at::isfinite(values).all().item<bool>()) return values;
    errors_.push_back(absl::StrCat(key, ": holds a NaN or an infinity"));
  }
  // The model is built completely even after an error, so that Finish() reports
  // all errors at once.
  return at::zeros(shape, c10::kFloat);
}

absl::Status StateDict::Finish() const {
  std::vector<std::string> errors = errors_;
  for (const auto& [key, view] : stored_) {
    if (taken_.count(key) == 0 && !IsIgnored(key)) {
      errors.push_back(
          absl::StrCat(absl::Utf8SafeCHexEscape(key.substr(0, 200)),
                       ": surplus, ", ShapeString(view.shape)));
    }
  }
  if (errors.empty()) return absl::OkStatus();
  // Only some errors are reported, because a checkpoint of another model has
  // hundreds.
  const size_t rest = errors.size() - std::min(errors.size(), kMaxReported);
  errors.resize(errors.size() - rest);
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(errors, "; "),
                   rest > 0 ? absl::StrCat("; and ", rest, " more") : ""));
}

}  // namespace sfmamba::weights
