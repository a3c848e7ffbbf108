// There are no expected logits of Vim. Therefore these tests compare it with
// its definition, which is written here a second time as fp64 loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/backbones/vim_mixer.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::model {
namespace {

using Vector = std::vector<double>;
using Sequence = std::vector<Vector>;  // [tokens][channels]

constexpr int kStates = 16;
constexpr int kTaps = 4;

Vector ToVector(const at::Tensor& tensor) {
  const at::Tensor values = tensor.contiguous();
  const float* data = values.const_data_ptr<float>();
  return Vector(data, data + values.numel());
}

Vector Parameter(const std::string& key, std::vector<int64_t> shape) {
  return ToVector(DeterministicParameter(key, shape));
}

// Returns W x, where W is [out, x.size()].
Vector Product(const Vector& W, const Vector& x) {
  Vector y(W.size() / x.size());
  for (size_t o = 0; o < y.size(); ++o) {
    for (size_t i = 0; i < x.size(); ++i) y[o] += W[o * x.size() + i] * x[i];
  }
  return y;
}

double Silu(double v) { return v / (1 + std::exp(-v)); }

Vector RmsNorm(const Vector& x, const Vector& weight) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] / std::sqrt(sum / x.size() + 1e-5) * weight[i];
  }
  return y;
}

// Computes one direction from x [tokens][channels] up to the scan's result,
// before the gate is applied.
Sequence ScanOneWay(const std::string& prefix, const std::string& suffix,
                    int width, const Sequence& x) {
  const int d = x[0].size(), rank = (width + 15) / 16;
  const std::string end = suffix + ".weight";
  const Vector conv = Parameter(prefix + "conv1d" + end, {d, 1, kTaps});
  const Vector conv_bias = Parameter(prefix + "conv1d" + suffix + ".bias", {d});
  const Vector x_proj =
      Parameter(prefix + "x_proj" + end, {rank + 2 * kStates, d});
  const Vector dt_proj = Parameter(prefix + "dt_proj" + end, {d, rank});
  const Vector dt_bias = Parameter(prefix + "dt_proj" + suffix + ".bias", {d});
  const Vector A_log = Parameter(prefix + "A" + suffix + "_log", {d, kStates});
  const Vector D = Parameter(prefix + "D" + suffix, {d});
  Sequence h(d, Vector(kStates)), y;
  for (int t = 0; t < static_cast<int>(x.size()); ++t) {
    Vector u(d);
    for (int c = 0; c < d; ++c) {
      double v = conv_bias[c];
      for (int tap = 0; tap < kTaps; ++tap) {
        const int from = t + tap - (kTaps - 1);
        if (from >= 0) v += conv[c * kTaps + tap] * x[from][c];
      }
      u[c] = Silu(v);
    }
    const Vector p = Product(x_proj, u);
    const Vector dt = Product(dt_proj, Vector(p.begin(), p.begin() + rank));
    Vector out(d);
    for (int c = 0; c < d; ++c) {
      const double delta = std::log1p(std::exp(dt[c] + dt_bias[c]));
      out[c] = D[c] * u[c];
      for (int n = 0; n < kStates; ++n) {
        const double A = -std::exp(A_log[c * kStates + n]);
        h[c][n] = std::exp(delta * A) * h[c][n] + delta * p[rank + n] * u[c];
        out[c] += p[rank + kStates + n] * h[c][n];
      }
    }
    y.push_back(out);
  }
  return y;
}

Sequence Backwards(Sequence x) {
  std::reverse(x.begin(), x.end());
  return x;
}

Sequence Mixer(const std::string& prefix, int expand, bool backward,
               const Sequence& input) {
  const int width = input[0].size(), d = expand * width;
  const Vector in_proj = Parameter(prefix + "in_proj.weight", {2 * d, width});
  const Vector out_proj = Parameter(prefix + "out_proj.weight", {width, d});
  Sequence x, z;
  for (const Vector& token : input) {
    const Vector xz = Product(in_proj, token);
    x.emplace_back(xz.begin(), xz.begin() + d);
    z.emplace_back(xz.begin() + d, xz.end());
  }
  Sequence y = ScanOneWay(prefix, "", width, x);
  if (backward) {
    const Sequence other =
        Backwards(ScanOneWay(prefix, "_b", width, Backwards(x)));
    for (size_t t = 0; t < y.size(); ++t) {
      for (int c = 0; c < d; ++c) y[t][c] = (y[t][c] + other[t][c]) / 2;
    }
  }
  for (size_t t = 0; t < y.size(); ++t) {
    for (int c = 0; c < d; ++c) y[t][c] *= Silu(z[t][c]);
    y[t] = Product(out_proj, y[t]);
  }
  return y;
}

// Returns the tokens of `image` [3, size, size]. The class token is in the
// middle, and the positions are added.
Sequence Embed(const at::Tensor& image, int E) {
  const int side = image.size(1) / 16, patches = side * side;
  const Vector weight = Parameter("patch_embed.proj.weight", {E, 3, 16, 16});
  const Vector bias = Parameter("patch_embed.proj.bias", {E});
  const Vector positions = Parameter("pos_embed", {1, patches + 1, E});
  Sequence x;
  for (int p = 0; p < patches; ++p) {
    const at::Tensor patch =
        image.narrow(1, p / side * 16, 16).narrow(2, p % side * 16, 16);
    x.push_back(Product(weight, ToVector(patch)));
    for (int c = 0; c < E; ++c) x.back()[c] += bias[c];
  }
  x.insert(x.begin() + patches / 2, Parameter("cls_token", {1, 1, E}));
  for (int t = 0; t <= patches; ++t) {
    for (int c = 0; c < E; ++c) x[t][c] += positions[t * E + c];
  }
  return x;
}

Vector MeanOf(const Sequence& x) {
  Vector mean(x[0].size());
  for (const Vector& token : x) {
    for (size_t c = 0; c < mean.size(); ++c) mean[c] += token[c] / x.size();
  }
  return mean;
}

// Returns the logits of the whole model for `image`. As in Vim's definition,
// the residual and the hidden state are separate.
Vector ExpectedLogits(const ModelConfig& config, const at::Tensor& image) {
  const BackboneConfig& backbone = config.backbone;
  const int E = backbone.vim_dim;
  Sequence hidden = Embed(image, E);
  size_t middle = (hidden.size() - 1) / 2;
  if (backbone.tokens == Tokens::kData) {
    const Vector mean = MeanOf(hidden);
    hidden.insert(hidden.begin(), mean);
    hidden.push_back(mean);
    ++middle;
  }
  Sequence residual(hidden.size(), Vector(E));
  for (int i = 0; i < backbone.vim_depth; ++i) {
    const std::string layer = absl::StrCat("layers.", i, ".");
    const Vector norm = Parameter(layer + "norm.weight", {E});
    Sequence normalized;
    for (size_t t = 0; t < hidden.size(); ++t) {
      for (int c = 0; c < E; ++c) residual[t][c] += hidden[t][c];
      normalized.push_back(RmsNorm(residual[t], norm));
    }
    hidden = Mixer(layer + "mixer.", 2, backbone.vim_backward, normalized);
    if (backbone.tokens == Tokens::kData && backbone.swap) {
      std::swap(hidden.front(), hidden.back());
      std::swap(residual.front(), residual.back());
    }
  }
  Vector sum(E);
  for (int c = 0; c < E; ++c) sum[c] = residual[middle][c] + hidden[middle][c];
  const int classes = config.num_classes;
  Vector logits = Product(Parameter("head.weight", {classes, E}),
                          RmsNorm(sum, Parameter("norm_f.weight", {E})));
  const Vector bias = Parameter("head.bias", {classes});
  for (int k = 0; k < classes; ++k) logits[k] += bias[k];
  return logits;
}

TEST(VimMixerTest, AgreesWithTheDefinition) {
  constexpr int kSequences = 4, kLength = 7, kWidth = 24;
  const at::Tensor x = DeterministicImages({kSequences, kLength, kWidth});
  for (const int expand : {1, 2}) {
    for (const bool backward : {false, true}) {
      Vector expected;
      for (int i = 0; i < kSequences; ++i) {
        Sequence sequence;
        for (int t = 0; t < kLength; ++t) {
          sequence.push_back(ToVector(x[i][t]));
        }
        for (const Vector& token :
             Mixer("mixer.", expand, backward, sequence)) {
          expected.insert(expected.end(), token.begin(), token.end());
        }
      }
      weights::StateDict weights(&DeterministicParameter);
      for (const bool cpu : {true, false}) {
        const backbones::VimMixer mixer(weights.root().Sub("mixer"),
                                        {kWidth, expand, backward}, {},
                                        CpuOrReference(cpu));
        for (const int rows : {1, 2, 4}) {
          ops::Residual y(
              at::zeros({rows, kSequences / rows * kLength, kWidth}));
          mixer.AddTo(y, x.view(y.sizes()), kLength);
          const Vector got = ToVector(y.Sum());
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_NEAR(got[i], expected[i], 2e-6) << i;
          }
        }
      }
    }
  }
}

TEST(VimMixerTest, RunsOnSequencesShorterThanItsConvolution) {
  const at::Tensor x = DeterministicImages({1, 1, 24});
  const Sequence expected = Mixer("mixer.", 1, true, {ToVector(x)});
  weights::StateDict weights(&DeterministicParameter);
  for (const bool cpu : {true, false}) {
    const backbones::VimMixer mixer(weights.root().Sub("mixer"), {24, 1, true},
                                    {}, CpuOrReference(cpu));
    ops::Residual y(at::zeros({1, 1, 24}));
    mixer.AddTo(y, x, 1);
    const Vector got = ToVector(y.Sum());
    for (int c = 0; c < 24; ++c) EXPECT_NEAR(got[c], expected[0][c], 2e-6);
  }
}

struct Kind {
  const char* name;
  bool backward;
  Tokens tokens;
  bool swap;
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

// A small Vim with 9 patches of 16 x 16 pixels, 24 channels and 3 layers.
class VimTest : public testing::TestWithParam<Kind> {
 protected:
  static constexpr int kImages = 4, kSize = 48, kClasses = 5;

  VimTest() {
    config_ = *VariantConfig("vim_s");
    config_.num_classes = kClasses;
    config_.image_size = kSize;
    config_.backbone.vim_dim = 24;
    config_.backbone.vim_depth = 3;
    config_.backbone.vim_backward = GetParam().backward;
    config_.backbone.tokens = GetParam().tokens;
    config_.backbone.swap = GetParam().swap;
  }

  std::vector<float> LogitsOf(const ModelOptions& options,
                              const at::Tensor& images) {
    return Logits(*MakeModel(config_, options), images);
  }

  ModelConfig config_;
  at::Tensor images_ = DeterministicImages({kImages, 3, kSize, kSize});
};

TEST_P(VimTest, AgreesWithTheDefinitionWithEveryFold) {
  std::vector<float> expected;
  for (int i = 0; i < kImages; ++i) {
    const Vector logits = ExpectedLogits(config_, images_[i]);
    expected.insert(expected.end(), logits.begin(), logits.end());
  }
  for (const bool reference : {false, true}) {
    for (const int fold_rows : {0, 1, 2, 4}) {
      const auto logits = LogitsOf({reference, fold_rows}, images_);
      EXPECT_LE(LargestDifference(logits, expected), 1e-5)
          << reference << " " << fold_rows;
    }
  }
}

TEST_P(VimTest, AnAnswerHasTheSameBytesAloneAndInABatch) {
  const auto model = MakeModel(config_);
  const std::vector<float> batch = Logits(*model, images_);
  for (int i = 0; i < kImages; ++i) {
    const std::vector<float> alone = Logits(*model, images_.narrow(0, i, 1));
    for (int k = 0; k < kClasses; ++k) {
      EXPECT_EQ(alone[k], batch[i * kClasses + k]);
    }
  }
}

TEST_P(VimTest, APoisonedImageLeavesItsBatchMatesAlone) {
  at::Tensor poisoned = images_.clone();
  poisoned[1].fill_(std::numeric_limits<float>::infinity());
  for (const int fold_rows : {0, 1, 2}) {
    const auto clean = LogitsOf({/*reference=*/false, fold_rows}, images_);
    const auto logits = LogitsOf({/*reference=*/false, fold_rows}, poisoned);
    for (int i = 0; i < kImages; ++i) {
      for (int j = i * kClasses; j < (i + 1) * kClasses; ++j) {
        if (i == 1) {
          EXPECT_FALSE(std::isfinite(logits[j]));
        } else {
          EXPECT_EQ(logits[j], clean[j]);
        }
      }
    }
  }
}

TEST_P(VimTest, HalfPrecisionStaysClose) {
  const std::vector<float> full = model::LogitsOf(config_, images_, Cpu());
  const double difference = LargestDifference(
      model::LogitsOf(config_, images_, Cpu(Precision::kBFloat16)), full);
  EXPECT_LE(difference, 0.06);
  EXPECT_GT(difference, 1e-4);  // Shows that bf16 was used.
}

TEST_P(VimTest, RefusesImagesOfAnotherSize) {
  const auto results = RunModel(*MakeModel(config_),
                                DeterministicImages({1, 3, kSize, 2 * kSize}));
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results.status().message(),
            "image 0: expected the model's size 48x48, got 48x96");
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, VimTest,
    testing::Values(Kind{"BothWays", true, Tokens::kNone, false},
                    Kind{"Forward", false, Tokens::kNone, false},
                    Kind{"ForwardSwap", false, Tokens::kData, true},
                    Kind{"ForwardTokensInPlace", false, Tokens::kData, false}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sfmamba::model
