#ifndef SFMAMBA_MODEL_BACKBONES_HYBRID_BACKBONE_H_
#define SFMAMBA_MODEL_BACKBONES_HYBRID_BACKBONE_H_

#include <optional>
#include <vector>

#include "ATen/core/Tensor.h"
#include "model/backbones/backbone.h"
#include "model/backbones/lite_trunk.h"
#include "model/backbones/patch_embed.h"
#include "model/backbones/stage.h"
#include "model/layers/convolution.h"
#include "model/layers/layer_norm.h"

namespace sfmamba::backbones {

// The backbone of MambaVision (arXiv 2407.08083) and of SF-Mamba (arXiv
// 2603.16423). It has two convolution stages and two token stages. A LiteTrunk
// may replace the first two or three stages. The features are the stages' maps
// before downsampling, or the trunk's maps of the same strides. With
// output_norms, each feature is the result of a LayerNorm in fp32. The next
// stage reads the map without this norm.
class HybridBackbone : public Backbone {
 public:
  HybridBackbone(const model::BackboneConfig& config, int image_size,
                 FeatureMaps maps, const weights::StateDict::Scope& scope,
                 const ops::Implementation& implementation);

  layers::Features Forward(const ops::ImageBatch& images,
                           int64_t fold_rows) const override;
  std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                 int64_t width) const override;

 private:
  // Appends a stage's map to `features`. If there are output norms, normalises
  // it first.
  void Add(const at::Tensor& map, layers::Features* features) const;
  // Runs the layers before the token stages and appends their maps to
  // `features`. Returns the input of the first token stage.
  at::Tensor ForwardConvolutions(const ops::ImageBatch& images,
                                 layers::Features* features) const;
  // Runs ForwardConvolutions() on one image at a time or on all images at once,
  // as the implementation prefers. If one image passes through all convolutions
  // alone, its maps may stay in the CPU's cache.
  at::Tensor ForwardParts(const ops::ImageBatch& images,
                          layers::Features* features) const;

  const FeatureMaps maps_;
  const ops::Implementation& implementation_;

  // If set, trunk_ replaces the next two members.
  std::optional<LiteTrunk> trunk_;
  std::optional<PatchEmbed> patch_embed_;
  std::vector<ConvStage> conv_stages_;    // Stages 1 and 2.
  std::vector<TokenStage> token_stages_;  // Stages 3 and 4, or only stage 4.
  std::vector<layers::Convolution> downsamples_;  // Between these stages.
  std::vector<layers::LayerNorm> output_norms_;   // One per stage, or empty.
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_HYBRID_BACKBONE_H_
