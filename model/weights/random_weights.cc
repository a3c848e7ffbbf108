#include "model/weights/random_weights.h"

#include <cmath>
#include <string>

#include "ATen/core/Tensor.h"
#include "ATen/ops/empty.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "model/weights/key_random.h"

namespace sfmamba::weights {
namespace {

// Returns the number of inputs that are summed up for each output of a weight.
// The weight is [out, in, ...], or [4, out, in] for VMamba's four directions.
int64_t FanIn(absl::string_view key, at::IntArrayRef shape) {
  if (absl::EndsWith(key, "_proj_weight") ||
      absl::EndsWith(key, "_projs_weight")) {
    return shape.back();
  }
  int64_t size = 1;
  for (const int64_t dimension : shape.slice(1)) size *= dimension;
  return size;
}

// Returns a layer's gain. This is the root mean square of the layer's outputs,
// divided by the root mean square of its inputs.
float Gain(absl::string_view key, at::IntArrayRef shape) {
  if (absl::StrContains(key, "fc_cls.")) return 4;
  // With a small gain, boxes stay near their anchors and regions.
  if (absl::StrContains(key, "_reg.")) return 0.25f;
  if (absl::StrContains(key, "shared_fcs.")) return std::sqrt(2.0f);
  // A weight with three axes, [channels, 1, taps], is a mixer's depthwise
  // convolution and gets gain 1.
  return shape.size() == 4 ? std::sqrt(2.0f) : 1;
}

at::Tensor Values(uint64_t seed, const std::string& key,
                  at::IntArrayRef shape) {
  const auto ends = [&](absl::string_view end) {
    return absl::EndsWith(key, end);
  };
  at::Tensor tensor = at::empty(shape, c10::kFloat);
  float* values = tensor.data_ptr<float>();
  const int64_t count = tensor.numel();
  if (ends("A_log") || ends("A_b_log") || ends("A_logs")) {  // A is -1, -2, ...
    for (int64_t i = 0; i < count; ++i) {
      values[i] = std::log(static_cast<float>(i % shape.back() + 1));
    }
    return tensor;
  }
  float offset = 0, range = 0;
  if (ends("dt_proj.bias") || ends("dt_proj_b.bias") || ends("dt_projs_bias")) {
    // If dt is 0, the steps softplus(dt + bias) of a scan are 0.05 to 0.3.
    // MambaVision adds this bias twice, so its steps are 0.002 to 0.13.
    offset = -2, range = 1;
  } else if (shape.size() != 1) {
    // A uniform distribution in this range has the variance gain^2 / inputs.
    // Activations then have a similar scale in all layers.
    range = Gain(key, shape) * std::sqrt(3.0f / FanIn(key, shape));
  } else if (ends("gamma_1") || ends("gamma_2")) {
    offset = 0.5f;
  } else if (ends("weight") || ends("running_var") || ends(".D") ||
             ends(".D_b") || ends(".Ds")) {
    offset = 1;
  }
  const uint64_t stream = KeySeed(key, seed);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = offset + range * UniformAt(stream, i);
  }
  return tensor;
}

}  // namespace

StateDict::Generator MakeRandomWeights(uint64_t seed) {
  return [seed](const std::string& key, at::IntArrayRef shape) {
    return Values(seed, key, shape);
  };
}

}  // namespace sfmamba::weights
