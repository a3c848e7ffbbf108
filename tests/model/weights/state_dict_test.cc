#include "model/weights/state_dict.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ATen/ops/equal.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::weights {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Contains tensors for a StateDict, and the memory to which they refer.
class Checkpoint {
 public:
  template <typename T>
  Checkpoint& Add(const std::string& key, DType dtype,
                  std::vector<int64_t> shape, const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    std::vector<uint8_t>& copy = memory_[key];
    copy.assign(bytes, bytes + values.size() * sizeof(T));
    tensors_[key] = {dtype, std::move(shape), copy};
    return *this;
  }
  Checkpoint& Add(const std::string& key, std::vector<float> values) {
    const int64_t size = values.size();
    return Add(key, DType::kF32, {size}, values);
  }

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }

 private:
  std::map<std::string, std::vector<uint8_t>> memory_;
  std::map<std::string, TensorView> tensors_;
};

std::vector<float> Values(const at::Tensor& tensor) {
  EXPECT_EQ(tensor.scalar_type(), c10::kFloat);
  EXPECT_TRUE(tensor.is_contiguous());
  const float* data = tensor.data_ptr<float>();
  return {data, data + tensor.numel()};
}

std::string MessageOf(const StateDict& weights) {
  const absl::Status status = weights.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(StateDictTest, HandsOutTensorsByScope) {
  Checkpoint checkpoint;
  checkpoint.Add("levels.2.blocks.0.mixer.D", {1, 2})
      .Add("levels.2.norm.weight", {3});
  StateDict weights(checkpoint.tensors());
  const StateDict::Scope stage = weights.root().Sub("levels.2");
  EXPECT_THAT(Values(stage.Sub("blocks.0").Take("mixer.D", {2})),
              ElementsAre(1, 2));
  EXPECT_THAT(Values(stage.Take("norm.weight", {1})), ElementsAre(3));
  EXPECT_EQ(weights.Finish(), absl::OkStatus());
}

TEST(StateDictTest, WidensHalfPrecision) {
  Checkpoint checkpoint;
  checkpoint
      .Add<uint16_t>("half", DType::kF16, {2, 2},
                     {0x3c00, 0xc000, 0x0001, 0x7bff})
      .Add<uint16_t>("bfloat", DType::kBF16, {3}, {0x3f80, 0xc000, 0x0080});
  StateDict weights(checkpoint.tensors());
  EXPECT_THAT(Values(weights.Take("half", {2, 2})),
              ElementsAre(1, -2, std::ldexp(1, -24), 65504));
  EXPECT_THAT(Values(weights.Take("bfloat", {3})),
              ElementsAre(1, -2, std::ldexp(1, -126)));
  EXPECT_EQ(weights.Finish(), absl::OkStatus());
}

TEST(StateDictTest, ReadsMisalignedData) {
  const float values[2] = {1.5, -7};
  std::vector<uint8_t> bytes(sizeof(values) + 1);
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  StateDict weights(
      {{"t",
        {DType::kF32, {2}, absl::MakeSpan(bytes).subspan(1, sizeof(values))}}});
  EXPECT_THAT(Values(weights.Take("t", {2})), ElementsAre(1.5, -7));
}

TEST(StateDictTest, TensorsOutliveTheirSource) {
  at::Tensor taken;
  {
    Checkpoint checkpoint;
    checkpoint.Add("t", {1, 2, 3});
    StateDict weights(checkpoint.tensors());
    taken = weights.Take("t", {3});
  }
  EXPECT_THAT(Values(taken), ElementsAre(1, 2, 3));
}

TEST(StateDictTest, NamesEverythingThatDoesNotFit) {
  Checkpoint checkpoint;
  checkpoint.Add("good", {1})
      .Add("misshapen", DType::kF32, {2, 1}, std::vector<float>{1, 2})
      .Add("mistyped", DType::kF64, {1}, std::vector<double>{1})
      .Add("counter", DType::kI64, {}, std::vector<int64_t>{1})
      .Add("surplus", {1, 2, 3});
  StateDict weights(checkpoint.tensors());
  weights.Take("good", {1});
  EXPECT_THAT(Values(weights.Take("misshapen", {2, 2})),
              ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Values(weights.Take("mistyped", {1})), ElementsAre(0));
  weights.Take("counter", {});
  EXPECT_THAT(Values(weights.Take("missing", {2})), ElementsAre(0, 0));
  EXPECT_EQ(MessageOf(weights),
            "misshapen: expected [2, 2], got [2, 1]; "
            "mistyped: expected F32, F16 or BF16, got F64; "
            "counter: expected F32, F16 or BF16, got I64; "
            "missing: missing, expected [2]; "
            "surplus: surplus, [3]");
}

TEST(StateDictTest, CountsWhatItDoesNotName) {
  StateDict weights(std::map<std::string, TensorView>{});
  for (int i = 0; i < 25; ++i) weights.Take(absl::StrCat("t", i), {1});
  EXPECT_THAT(MessageOf(weights),
              AllOf(HasSubstr("t19: missing"), Not(HasSubstr("t20")),
                    HasSubstr("; and 5 more")));
}

TEST(StateDictTest, CountersOfBatchNormAreIgnored) {
  Checkpoint checkpoint;
  checkpoint.Add("norm.num_batches_tracked", DType::kI64, {},
                 std::vector<int64_t>{7});
  EXPECT_EQ(StateDict(checkpoint.tensors()).Finish(), absl::OkStatus());
}

TEST(StateDictTest, TheAuxiliaryHeadIsIgnored) {
  Checkpoint checkpoint;
  checkpoint.Add("auxiliary_head.conv_seg.bias", {1})
      .Add("decode_head.auxiliary_head.bias", {2});
  EXPECT_EQ(MessageOf(StateDict(checkpoint.tensors())),
            "decode_head.auxiliary_head.bias: surplus, [1]");
}

TEST(StateDictTest, ADtProjectionMayBeAConvolution) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  Checkpoint checkpoint;
  checkpoint.Add("a.dt_proj.weight", DType::kF32, {2, 3, 1}, values)
      .Add("b.dt_proj.weight", DType::kF32, {3, 2, 1}, values)
      .Add("c.in_proj.weight", DType::kF32, {2, 3, 1}, values)
      .Add("d.dt_proj.weight", DType::kF32, {1, 3, 2}, values);
  StateDict weights(checkpoint.tensors());
  const at::Tensor taken = weights.Take("a.dt_proj.weight", {2, 3});
  EXPECT_EQ(taken.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(Values(taken), values);
  weights.Take("b.dt_proj.weight", {2, 3});
  weights.Take("c.in_proj.weight", {2, 3});
  weights.Take("d.dt_proj.weight", {1, 3});
  EXPECT_EQ(MessageOf(weights),
            "b.dt_proj.weight: expected [2, 3], got [3, 2, 1]; "
            "c.in_proj.weight: expected [2, 3], got [2, 3, 1]; "
            "d.dt_proj.weight: expected [1, 3], got [1, 3, 2]");
}

TEST(StateDictTest, ADenseModelKeepsItsPartsNames) {
  Checkpoint checkpoint;
  checkpoint.Add("module.backbone.outnorm0.bias", {1})
      .Add("module.decode_head.conv_seg.bias", {2});
  StateDict weights(checkpoint.tensors());
  EXPECT_THAT(Values(weights.Take("backbone.outnorm0.bias", {1})),
              ElementsAre(1));
  EXPECT_THAT(Values(weights.Take("decode_head.conv_seg.bias", {1})),
              ElementsAre(2));
  EXPECT_EQ(weights.Finish(), absl::OkStatus());
}

TEST(StateDictTest, ADenseVMambaMayHaveItsOlderNames) {
  Checkpoint checkpoint;
  checkpoint.Add("backbone.layers.0.blocks.0.self_attention.A_logs", {1})
      .Add("backbone.layers.0.blocks.0.ln_1.weight", {2})
      .Add("neck.fpn_convs.0.conv.bias", {3});
  StateDict weights(checkpoint.tensors());
  const StateDict::Scope block =
      weights.root().Sub("backbone.layers.0.blocks.0");
  EXPECT_THAT(Values(block.Take("op.A_logs", {1})), ElementsAre(1));
  EXPECT_THAT(Values(block.Take("norm.weight", {1})), ElementsAre(2));
  EXPECT_THAT(Values(weights.Take("neck.fpn_convs.0.conv.bias", {1})),
              ElementsAre(3));
  EXPECT_EQ(weights.Finish(), absl::OkStatus());
}

TEST(StateDictTest, SurplusNamesAreMadePrintable) {
  Checkpoint checkpoint;
  checkpoint.Add("a\nb", {1});
  EXPECT_EQ(MessageOf(StateDict(checkpoint.tensors())), "a\\nb: surplus, [1]");
}

TEST(StateDictTest, StripsTheWrappersPrefixes) {
  for (const std::string prefix :
       {"module.", "model.", "backbone.", "module.model.", "model.backbone.",
        "module.model.backbone."}) {
    Checkpoint checkpoint;
    checkpoint.Add(prefix + "norm.bias", {1}).Add(prefix + "norm.weight", {2});
    StateDict weights(checkpoint.tensors());
    EXPECT_THAT(Values(weights.Take("norm.bias", {1})), ElementsAre(1));
    EXPECT_THAT(Values(weights.Take("norm.weight", {1})), ElementsAre(2));
    EXPECT_EQ(weights.Finish(), absl::OkStatus()) << prefix;
  }
}

TEST(StateDictTest, KeepsAPrefixThatNotAllKeysHave) {
  Checkpoint checkpoint;
  checkpoint.Add("module.norm.bias", {1}).Add("norm.weight", {2});
  StateDict weights(checkpoint.tensors());
  weights.Take("norm.bias", {1});
  weights.Take("norm.weight", {1});
  EXPECT_EQ(MessageOf(weights),
            "norm.bias: missing, expected [1]; module.norm.bias: surplus, [1]");
}

TEST(StateDictTest, KeepsTheEncoderAlone) {
  Checkpoint checkpoint;
  checkpoint.Add("encoder.norm.bias", {1}).Add("head.bias", {2});
  StateDict weights(checkpoint.tensors());
  EXPECT_THAT(Values(weights.Take("norm.bias", {1})), ElementsAre(1));
  EXPECT_EQ(weights.Finish(), absl::OkStatus());
}

TEST(StateDictTest, AGeneratorHasEverything) {
  StateDict weights(&DeterministicParameter);
  const StateDict::Scope scope = weights.root().Sub("levels.2");
  EXPECT_TRUE(at::equal(scope.Take("norm.weight", {5}),
                        DeterministicParameter("levels.2.norm.weight", {5})));
  EXPECT_EQ(weights.Finish(), absl::OkStatus());
}

std::vector<float> FirstOf(const at::Tensor& tensor, int count) {
  const float* data = tensor.data_ptr<float>();
  return {data, data + count};
}

void ExpectNear(const std::vector<float>& got,
                const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], 1e-7 * std::abs(expected[i])) << i;
  }
}

TEST(DeterministicTest, GivesTheSpecifiedValues) {
  ExpectNear(FirstOf(DeterministicImages({2, 3, 96, 80}), 4),
             {-0.804363370, 0.304720759, -0.592751503, -0.451110721});
  ExpectNear(FirstOf(DeterministicParameter("patch_embed.conv_down.0.weight",
                                            {8, 3, 3, 3}),
                     3),
             {-0.190869451, 0.331050247, 0.156365678});
  ExpectNear(
      FirstOf(DeterministicParameter("levels.2.blocks.0.mixer.A_log", {32, 8}),
              3),
      {-0.014207709, 0.764723659, 1.065408230});
  ExpectNear(FirstOf(DeterministicParameter(
                         "levels.2.blocks.0.mixer.dt_proj.bias", {32}),
                     2),
             {-1.773521781, -2.428801298});
}

TEST(DeterministicTest, TheKeysEndDecidesTheRange) {
  struct Case {
    const char* key;
    std::vector<int64_t> shape;
    double min, max;
  };
  for (const Case& c : std::vector<Case>{
           {"norm.num_batches_tracked", {}, 0, 0},
           {"norm.running_var", {100}, 0.75, 1.25},
           {"norm.running_mean", {100}, -0.1, 0.1},
           {"mixer.A_b_log", {100, 1}, -0.1, 0.1},
           {"mixer.D", {100}, 0.9, 1.1},
           {"mixer.D_b", {100}, 0.9, 1.1},
           {"mixer.dt_proj_b.bias", {100}, -3, -1},
           {"blocks.0.gamma_2", {100}, 0.4, 0.6},
           {"norm1.weight", {100}, 0.9, 1.1},
           {"norm1.bias", {100}, -0.1, 0.1},
           {"mlp.fc1.weight", {100, 12}, -0.5, 0.5},
           {"conv1d_x.weight", {100, 1, 3}, -1, 1},
       }) {
    const std::vector<float> values =
        Values(DeterministicParameter(c.key, c.shape));
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*low, c.min - 1e-6) << c.key;
    EXPECT_LE(*high, c.max + 1e-6) << c.key;
    EXPECT_GE(*high - *low, 0.9 * (c.max - c.min)) << c.key;
  }
}

TEST(StateDictTest, ValuesThatAreNotFiniteAreNamed) {
  Checkpoint checkpoint;
  checkpoint.Add("good", {1, 2})
      .Add("nan", {1, std::nanf("")})
      .Add("infinite", {-HUGE_VALF, 0});
  StateDict weights(checkpoint.tensors());
  EXPECT_THAT(Values(weights.Take("good", {2})), ElementsAre(1, 2));
  EXPECT_THAT(Values(weights.Take("nan", {2})), ElementsAre(0, 0));
  EXPECT_THAT(Values(weights.Take("infinite", {2})), ElementsAre(0, 0));
  EXPECT_EQ(MessageOf(weights),
            "nan: holds a NaN or an infinity; infinite: holds a NaN or an "
            "infinity");
}

}  // namespace
}  // namespace sfmamba::weights
