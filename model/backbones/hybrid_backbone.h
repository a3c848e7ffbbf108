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

namespace sfmamba::backbones {

// The backbone of MambaVision (arXiv 2407.08083) and of SF-Mamba (arXiv
// 2603.16423): two stages of convolutions, in whose place a LiteTrunk may
// stand, and two of tokens. Its features are the stages' maps before their
// downsampling; with output_norms each behind a LayerNorm of its own, in fp32,
// which the next stage does not see.
class HybridBackbone : public Backbone {
 public:
  HybridBackbone(const model::BackboneConfig& config, int image_size,
                 const weights::StateDict::Scope& scope,
                 const layers::LayerOptions& options);

  layers::Features Forward(const layers::ImageBatch& images,
                           int64_t fold_rows) const override;
  std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                 int64_t width) const override;

 private:
  // A LayerNorm over the channels of a map [N, C, H, W].
  struct Norm {
    at::Tensor gamma, beta;  // [C]
  };
  at::Tensor Normalized(const Norm& norm, const at::Tensor& map) const;
  // Adds the next stage's map.
  void Add(const at::Tensor& map, layers::Features* features) const;
  // Runs what comes before stage 3 and returns its input.
  at::Tensor ForwardConvolutions(const layers::ImageBatch& images,
                                 layers::Features* features) const;

  bool fuse_;
  std::optional<LiteTrunk> trunk_;  // Instead of the next two members.
  std::optional<PatchEmbed> patch_embed_;
  std::vector<ConvStage> conv_stages_;    // Stages 1 and 2.
  std::vector<TokenStage> token_stages_;  // Stages 3 and 4.
  std::vector<layers::Convolution>
      downsamples_;                 // After stage 3, and those before.
  std::vector<Norm> output_norms_;  // One a stage, or none.
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_HYBRID_BACKBONE_H_
