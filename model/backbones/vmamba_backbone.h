#ifndef SFMAMBA_MODEL_BACKBONES_VMAMBA_BACKBONE_H_
#define SFMAMBA_MODEL_BACKBONES_VMAMBA_BACKBONE_H_

#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/backbones/backbone.h"
#include "model/backbones/mlp.h"
#include "model/backbones/normed_stem.h"
#include "model/layers/convolution.h"
#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The mixer of VMamba. It consists of a linear layer, a depthwise 3x3
// convolution with SiLU, a scan of the whole map in four directions, and
// another linear layer.
class CrossScanMixer {
 public:
  CrossScanMixer(const weights::StateDict::Scope& scope, int width, int inner,
                 int size, const ops::Implementation& implementation);

  // Computes residual += mixer(x). Both are [N, height * width, C].
  void AddTo(ops::Residual& residual, const at::Tensor& x, int64_t height,
             int64_t width) const;

 private:
  const ops::Implementation& implementation_;
  layers::Linear in_;
  layers::Convolution convolution_;
  std::unique_ptr<const ops::CrossScanOp> scan_;
  layers::Linear out_;
};

// A block of a mixer and an MLP. Each of the two reads the residual stream
// through a LayerNorm.
class VMambaBlock {
 public:
  VMambaBlock(const weights::StateDict::Scope& scope,
              const model::BackboneConfig& config, int stage, int size,
              const ops::Implementation& implementation);

  // x [N, height * width, C] contains the pixels of maps in row-major order.
  void Forward(ops::Residual& x, int64_t height, int64_t width) const;

 private:
  layers::LayerNorm norm_;
  CrossScanMixer mixer_;
  layers::LayerNorm norm2_;
  Mlp mlp_;
};

// The backbone of VMamba (arXiv 2401.10166) in its second version. It has four
// stages of blocks that scan the whole map. The features are the stages' maps
// before downsampling. With output_norms, each feature is the result of a
// LayerNorm. The next stage reads the map without this norm. `fold_rows` has no
// effect.
class VMambaBackbone : public Backbone {
 public:
  VMambaBackbone(const model::BackboneConfig& config, int image_size,
                 FeatureMaps maps, const weights::StateDict::Scope& scope,
                 const ops::Implementation& implementation);

  layers::Features Forward(const ops::ImageBatch& images,
                           int64_t fold_rows) const override;
  // Every image counts as one sequence.
  std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                 int64_t width) const override;

 private:
  struct Downsample {
    layers::Convolution convolution;
    layers::LayerNorm norm;
  };

  const FeatureMaps maps_;
  NormedStem stem_;
  std::vector<std::vector<VMambaBlock>> stages_;
  std::vector<Downsample> downsamples_;          // After stages 0 to 2.
  std::vector<layers::LayerNorm> output_norms_;  // One per stage, or empty.
  std::unique_ptr<const ops::WindowOp> windows_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_VMAMBA_BACKBONE_H_
