#ifndef SFMAMBA_MODEL_BACKBONES_EFFICIENT_VIM_BACKBONE_H_
#define SFMAMBA_MODEL_BACKBONES_EFFICIENT_VIM_BACKBONE_H_

#include <memory>
#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/backbones/backbone.h"
#include "model/layers/convolution.h"
#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/layers/stem_convolution.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The mixer of EfficientViM. It computes n hidden states for each image. Each
// hidden state is computed from a weighted sum of all pixels of the image. The
// mixer then computes each pixel of the result as a weighted sum of the hidden
// states. Source: EfficientViM (arXiv 2411.15241), 4.1, the HSM-SSD layer.
class StateMixer {
 public:
  // `states` is n, the number of hidden states. `size` is the expected side of
  // the map in pixels.
  StateMixer(const weights::StateDict::Scope& scope, int width, int states,
             int size, const ops::Implementation& implementation);

  struct Mixed {
    at::Tensor map;     // [N, width, H, W]
    at::Tensor states;  // [N, n, width]
  };
  // `map` [N, width, H, W] must be normalised. All results are fp32.
  Mixed Forward(const at::Tensor& map) const;

 private:
  const int states_;
  layers::Convolution project_, convolve_;  // Compute B, C and dt.
  layers::Linear hz_, out_;
  at::Tensor skip_;  // [1], called D in the paper.
};

// A block with four layers: a depthwise convolution, the mixer, another
// depthwise convolution and an MLP. After each layer, the block continues with
// a weighted mean of the layer's input and output. The weights are learned, one
// for each layer and channel.
class EfficientVimBlock {
 public:
  EfficientVimBlock(const weights::StateDict::Scope& scope, int width,
                    int states, int size,
                    const ops::Implementation& implementation);

  StateMixer::Mixed Forward(const at::Tensor& map) const;

 private:
  // `parts` is fp64 [4, width]. Row i contains the weights of layer i's output.
  EfficientVimBlock(const weights::StateDict::Scope& scope, int width,
                    int states, int size, const at::Tensor& parts,
                    const ops::Implementation& implementation);

  layers::Convolution dwconv1_, dwconv2_;  // These include the weighted mean.
  layers::LayerNorm norm_;
  StateMixer mixer_;
  layers::Convolution fc1_, fc2_;  // fc2_ includes the MLP's weight.
  at::Tensor mixer_weight_;        // [width, 1, 1]
  at::Tensor mlp_rest_;            // [width, 1, 1], 1 - the MLP's weight.
};

// The layers between two stages. An inverted residual block with stride 2 and
// squeeze-and-excitation lies between two residual depthwise convolutions.
class EfficientVimMerge {
 public:
  EfficientVimMerge(const weights::StateDict::Scope& scope, int in, int out,
                    int size, const ops::Implementation& implementation);

  at::Tensor Forward(const at::Tensor& map) const;

 private:
  layers::Convolution dwconv1_, expand_, reduce_, project_, dwconv2_;
  std::unique_ptr<const ops::PoolingOp> pooling_;
  layers::Linear squeeze_, excite_;
};

// The backbone of EfficientViM, with three stages at strides 16, 32 and 64. The
// last feature is the classifier's input, stored as a map of one pixel. It
// consists of the mean of each stage's normalised states, followed by the mean
// of the normalised last map. With FeatureMaps::kAll, the maps of the stages
// come before it.
class EfficientVimBackbone : public Backbone {
 public:
  EfficientVimBackbone(const model::BackboneConfig& config, int image_size,
                       FeatureMaps maps, const weights::StateDict::Scope& scope,
                       const ops::Implementation& implementation);

  layers::Features Forward(const ops::ImageBatch& images,
                           int64_t fold_rows) const override;
  // Every image counts as one sequence.
  std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                 int64_t width) const override;
  // The last layers compute maps with few pixels. For a single image, reading
  // the weights of these layers takes as long as multiplying by them. If four
  // images are computed together, the weights are read only once.
  int64_t ImagesAtOnce() const override { return 4; }

 private:
  const FeatureMaps maps_;
  std::optional<layers::StemConvolution> first_;
  std::vector<layers::Convolution> stem_;  // The convolutions after first_.
  std::vector<std::vector<EfficientVimBlock>> stages_;
  std::vector<EfficientVimMerge> merges_;
  // Three for the states, one for the map.
  std::vector<layers::LayerNorm> norms_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_EFFICIENT_VIM_BACKBONE_H_
