#ifndef SFMAMBA_MODEL_BACKBONES_MAMBA_OUT_BACKBONE_H_
#define SFMAMBA_MODEL_BACKBONES_MAMBA_OUT_BACKBONE_H_

#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/backbones/backbone.h"
#include "model/backbones/normed_stem.h"
#include "model/layers/convolution.h"
#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// A convolution of stride 2 and a LayerNorm. The LayerNorm comes first if
// MambaOutConfig::rw is set.
class MambaOutDownsample {
 public:
  // Downsamples the input of stage `stage` (1..3). `size` is the expected side
  // of this input, which affects the choice of algorithms.
  MambaOutDownsample(const weights::StateDict::Scope& scope,
                     const model::MambaOutConfig& config, int stage, int size,
                     const ops::Implementation& implementation);

  at::Tensor Forward(const at::Tensor& map) const;

 private:
  const bool norm_first_;
  layers::LayerNorm norm_;
  layers::Convolution convolution_;
};

// The gated CNN block. Computes x += gamma * fc2(gate(fc1(norm(x)))).
class GatedBlock {
 public:
  GatedBlock(const weights::StateDict::Scope& scope,
             const model::MambaOutConfig& config, int stage,
             const ops::Implementation& implementation);

  // x [N, height * width, C] contains the pixels of maps in row-major order.
  void Forward(ops::Residual& x, int64_t height, int64_t width) const;

 private:
  layers::LayerNorm norm_;
  layers::Linear fc1_;
  std::unique_ptr<const ops::GatedConvolutionOp> gate_;
  layers::Linear fc2_;
};

// The backbone of MambaOut (arXiv 2405.07992), which has four stages of gated
// CNN blocks. The features are the stages' maps before downsampling. There are
// no scans, so `fold_rows` has no effect.
class MambaOutBackbone : public Backbone {
 public:
  MambaOutBackbone(const model::BackboneConfig& config, int image_size,
                   FeatureMaps maps, const weights::StateDict::Scope& scope,
                   const ops::Implementation& implementation);

  layers::Features Forward(const ops::ImageBatch& images,
                           int64_t fold_rows) const override;
  // Every image counts as one sequence.
  std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                 int64_t width) const override;

 private:
  const FeatureMaps maps_;
  NormedStem stem_;
  std::vector<MambaOutDownsample> downsamples_;  // Before stages 1 to 3.
  std::vector<std::vector<GatedBlock>> stages_;
  std::unique_ptr<const ops::WindowOp> windows_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_MAMBA_OUT_BACKBONE_H_
