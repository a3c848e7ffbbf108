#include "tests/testing/deterministic.h"

#include <cmath>

#include "ATen/ops/empty.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "model/weights/key_random.h"

namespace sfmamba {
namespace {

// Sets each element i to value(u, i). `u` is a pseudorandom number in [-1, 1)
// that depends on `key` and i.
template <typename Value>
at::Tensor Fill(absl::string_view key, at::IntArrayRef shape, Value value) {
  at::Tensor tensor = at::empty(shape, c10::kFloat);
  float* data = tensor.data_ptr<float>();
  const uint64_t seed = weights::KeySeed(key);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    data[i] = static_cast<float>(value(weights::UniformAt(seed, i), i));
  }
  return tensor;
}

at::Tensor Affine(absl::string_view key, at::IntArrayRef shape, double offset,
                  double scale) {
  return Fill(key, shape,
              [=](double u, int64_t) { return offset + scale * u; });
}

}  // namespace

at::Tensor DeterministicParameter(const std::string& key,
                                  at::IntArrayRef shape) {
  const auto ends = [&](absl::string_view end) {
    return absl::EndsWith(key, end);
  };
  if (ends("num_batches_tracked")) return Affine(key, shape, 0, 0);
  if (ends("running_var")) return Affine(key, shape, 1, 0.25);
  if (ends("running_mean")) return Affine(key, shape, 0, 0.1);
  if (ends("A_log") || ends("A_b_log") || ends("A_logs")) {
    return Fill(key, shape, [&](double u, int64_t i) {
      return std::log(i % shape.back() + 1) + 0.1 * u;
    });
  }
  if (ends(".D") || ends(".D_b") || ends(".Ds"))
    return Affine(key, shape, 1, 0.1);
  if (ends("dt_proj.bias") || ends("dt_proj_b.bias") || ends("dt_projs_bias")) {
    return Affine(key, shape, -2, 1);
  }
  if (ends("gamma_1") || ends("gamma_2")) return Affine(key, shape, 0.5, 0.1);
  if (ends(".ls.gamma")) return Affine(key, shape, 0.5, 0.1);
  if (ends(".mixer.A")) return Affine(key, shape, 8.5, 7.5);
  if (ends(".alpha") || ends("weights") || ends("weights_dist")) {
    return Affine(key, shape, 0, 1);
  }
  if (ends("x_proj_weight") || ends("dt_projs_weight")) {
    return Affine(key, shape, 0, std::sqrt(3.0 / shape.back()));
  }
  if (shape.size() == 1) {
    return ends("weight") ? Affine(key, shape, 1, 0.1)
                          : Affine(key, shape, 0, 0.1);
  }
  int64_t fan_in = 1;
  for (const int64_t size : shape.slice(1)) fan_in *= size;
  return Affine(key, shape, 0, std::sqrt(3.0 / fan_in));
}

at::Tensor DeterministicImages(at::IntArrayRef shape) {
  return Affine("input", shape, 0, 1);
}

}  // namespace sfmamba
