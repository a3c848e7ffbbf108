// Runs whole models with an implementation that only this test knows. This
// shows that no other code depends on the implementation.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/ops/implementation.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::ops {
namespace {

using Counts = std::map<std::string, int>;

// Calls another implementation's linear operator and counts the calls.
class CountedLinear : public LinearOp {
 public:
  CountedLinear(std::unique_ptr<LinearOp> op, int* calls)
      : op_(std::move(op)), calls_(calls) {}

  at::Tensor Forward(const at::Tensor& x) const override {
    ++*calls_;
    return op_->Forward(x);
  }
  void AddTo(Residual& residual, const at::Tensor& x) const override {
    ++*calls_;
    op_->AddTo(residual, x);
  }

 private:
  const std::unique_ptr<LinearOp> op_;
  int* const calls_;
};

// Counts the operators that another implementation makes. Also counts calls of
// linear operators and of operators without parameters. Not thread-safe.
class FakeImplementation : public Implementation {
 public:
  explicit FakeImplementation(const Implementation& real) : real_(real) {}

  const Counts& made() const { return made_; }
  const Counts& calls() const { return calls_; }

  std::unique_ptr<LinearOp> MakeLinear(
      const LinearParameters& parameters) const override {
    ++made_["linear"];
    return std::make_unique<CountedLinear>(real_.MakeLinear(parameters),
                                           &calls_["linear"]);
  }
  std::unique_ptr<ConvolutionOp> MakeConvolution(
      const ConvolutionParameters& parameters) const override {
    ++made_["convolution"];
    return real_.MakeConvolution(parameters);
  }
  std::unique_ptr<StemOp> MakeStem(
      const ConvolutionParameters& parameters) const override {
    ++made_["stem"];
    return real_.MakeStem(parameters);
  }
  std::unique_ptr<LayerNormOp> MakeLayerNorm(
      const LayerNormParameters& parameters) const override {
    ++made_["layer norm"];
    return real_.MakeLayerNorm(parameters);
  }
  std::unique_ptr<ShortConvolutionOp> MakeShortConvolution(
      const ShortConvolutionParameters& parameters) const override {
    ++made_["short convolution"];
    return real_.MakeShortConvolution(parameters);
  }
  std::unique_ptr<ScanProjectionOp> MakeScanProjection(
      const ScanProjectionParameters& parameters) const override {
    ++made_["scan projection"];
    return real_.MakeScanProjection(parameters);
  }
  std::unique_ptr<SelectiveScanOp> MakeSelectiveScan(
      const ScanParameters& parameters) const override {
    ++made_["selective scan"];
    return real_.MakeSelectiveScan(parameters);
  }
  std::unique_ptr<CrossScanOp> MakeCrossScan(
      const CrossScanParameters& parameters) const override {
    ++made_["cross scan"];
    return real_.MakeCrossScan(parameters);
  }
  std::unique_ptr<WindowOp> MakeWindows(
      const WindowParameters& parameters) const override {
    ++made_["windows"];
    return real_.MakeWindows(parameters);
  }
  std::unique_ptr<PoolingOp> MakePooling(
      const PoolingParameters& parameters) const override {
    ++made_["pooling"];
    return real_.MakePooling(parameters);
  }
  std::unique_ptr<PyramidFusionOp> MakePyramidFusion(
      const PyramidFusionParameters& parameters) const override {
    ++made_["pyramid fusion"];
    return real_.MakePyramidFusion(parameters);
  }
  std::unique_ptr<GatedConvolutionOp> MakeGatedConvolution(
      const GatedConvolutionParameters& parameters) const override {
    ++made_["gated convolution"];
    return real_.MakeGatedConvolution(parameters);
  }

  void Activate(at::Tensor& x, model::Nonlinearity activation) const override {
    ++calls_["activate"];
    real_.Activate(x, activation);
  }
  at::Tensor Values(const ImageBatch& images) const override {
    ++calls_["values"];
    return real_.Values(images);
  }
  void FillEndsWithMean(at::Tensor& x) const override {
    ++calls_["fill ends"];
    real_.FillEndsWithMean(x);
  }
  at::Tensor Attention(const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v) const override {
    ++calls_["attention"];
    return real_.Attention(q, k, v);
  }
  at::Tensor RoiMap(const at::Tensor& map) const override {
    ++calls_["RoI map"];
    return real_.RoiMap(map);
  }
  at::Tensor RoiAlign(const std::vector<at::Tensor>& maps,
                      const std::vector<int>& strides, const at::Tensor& rois,
                      int size, float finest_scale) const override {
    ++calls_["RoIAlign"];
    return real_.RoiAlign(maps, strides, rois, size, finest_scale);
  }
  at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
                 const at::Tensor& groups, float iou_threshold,
                 int64_t max_kept) const override {
    ++calls_["NMS"];
    return real_.Nms(boxes, scores, groups, iou_threshold, max_kept);
  }
  void SegmentationArgmax(const at::Tensor& logits, int input_height,
                          int input_width, bool confidence,
                          model::Segmentation* out) const override {
    ++calls_["class map"];
    real_.SegmentationArgmax(logits, input_height, input_width, confidence,
                             out);
  }
  void ForEachPart(int64_t count, int64_t size,
                   absl::FunctionRef<void(int64_t first, int64_t count)> body)
      const override {
    ++calls_["parts"];
    real_.ForEachPart(count, size, body);
  }

 private:
  const Implementation& real_;
  mutable Counts made_, calls_;
};

// Stages 3 and 4 have 6 Mamba blocks and 6 attention blocks.
TEST(FakeImplementationTest, RunsSfMambaT) {
  const model::ModelConfig config = *model::VariantConfig("sf_mamba_t");
  const at::Tensor images = DeterministicImages({1, 3, 224, 224});
  const FakeImplementation fake(model::Cpu());
  EXPECT_EQ(model::LogitsOf(config, images, fake),
            model::LogitsOf(config, images, model::Cpu()));
  EXPECT_EQ(fake.made(), (Counts{{"linear", 4 * 12 + 1},
                                 {"convolution", 1 + 2 * (1 + 3) + 3},
                                 {"stem", 1},
                                 {"layer norm", 2 * 12},
                                 {"short convolution", 6},
                                 {"scan projection", 6},
                                 {"selective scan", 6},
                                 {"windows", 2},
                                 {"pooling", 1}}));
  EXPECT_EQ(fake.calls(),
            (Counts{{"linear", 4 * 12 + 1}, {"attention", 6}, {"parts", 1}}));
}

}  // namespace
}  // namespace sfmamba::ops
