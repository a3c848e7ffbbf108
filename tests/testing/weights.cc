#include "tests/testing/weights.h"

#include <cstdio>
#include <cstdlib>

#include "model/engine/make_vision_model.h"
#include "model/weights/safetensors.h"
#include "model/weights/state_dict.h"
#include "tests/testing/deterministic.h"

namespace sfmamba {
namespace {

void DieUnlessOk(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

weights::DType TypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case c10::kHalf:
      return weights::DType::kF16;
    case c10::kBFloat16:
      return weights::DType::kBF16;
    case c10::kDouble:
      return weights::DType::kF64;
    case c10::kLong:
      return weights::DType::kI64;
    default:
      TORCH_CHECK(tensor.scalar_type() == c10::kFloat, "not a weight's type");
      return weights::DType::kF32;
  }
}

}  // namespace

std::map<std::string, at::Tensor> DeterministicWeights(
    const model::ModelConfig& config) {
  DieUnlessOk(model::Validate(config));
  std::map<std::string, at::Tensor> taken;
  weights::StateDict weights(
      [&](const std::string& key, at::IntArrayRef shape) {
        return taken[key] = DeterministicParameter(key, shape);
      });
  DieUnlessOk(
      engine::MakeVisionModel(config, weights, {/*reference=*/true}).status());
  return taken;
}

absl::Status WriteWeights(const std::string& path,
                          const std::map<std::string, at::Tensor>& weights) {
  std::map<std::string, at::Tensor> dense;  // This owns the data of the views.
  std::map<std::string, weights::TensorView> views;
  for (const auto& [key, tensor] : weights) {
    const at::Tensor& own = dense[key] = tensor.contiguous();
    views[key] = {
        TypeOf(own), own.sizes().vec(),
        absl::MakeConstSpan(static_cast<const uint8_t*>(own.const_data_ptr()),
                            own.nbytes())};
  }
  return weights::WriteSafetensors(path, views);
}

}  // namespace sfmamba
