#ifndef SFMAMBA_MODEL_BACKBONES_VIM_BACKBONE_H_
#define SFMAMBA_MODEL_BACKBONES_VIM_BACKBONE_H_

#include <memory>
#include <vector>

#include "model/backbones/auxiliary_tokens.h"
#include "model/backbones/backbone.h"
#include "model/backbones/mixer.h"
#include "model/layers/linear.h"

namespace sfmamba::backbones {

// The backbone of Vim. Each patch of 16 x 16 pixels is a token. A class token
// stands in the middle of the sequence. All tokens pass through a series of Vim
// mixers. The only feature is the normalised class token, stored as a map of
// one pixel. Sources: Vim (arXiv 2401.09417), 3.2; for the auxiliary tokens
// SF-Mamba (arXiv 2603.16423).
class VimBackbone : public Backbone {
 public:
  static constexpr int kPatch = 16;  // The side of a patch in pixels.

  // All images must have sides of `image_size` pixels, because the position
  // embedding has a fixed size. `image_size` must be a multiple of kPatch.
  VimBackbone(const model::BackboneConfig& config, int image_size,
              const weights::StateDict::Scope& scope,
              const ops::Implementation& implementation);

  layers::Features Forward(const ops::ImageBatch& images,
                           int64_t fold_rows) const override;
  // Every image is one sequence.
  std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                 int64_t width) const override;

 private:
  struct Layer {
    at::Tensor norm;  // [width], the weight of the RMSNorm before the mixer.
    std::unique_ptr<Mixer> mixer;
  };

  // Maps images [N, 3, H, W] to sequences [N, L, width] in fp32.
  at::Tensor Embed(const at::Tensor& images) const;

  const ops::Implementation& implementation_;
  int patches_;  // The number of patches per image.
  // Maps a patch's pixels, [3, kPatch, kPatch], to a token.
  layers::Linear patch_embed_;
  at::Tensor class_token_;  // [1, 1, width]
  at::Tensor positions_;    // [1, patches + 1, width], added to the tokens.
  AuxiliaryTokens tokens_;
  std::vector<Layer> layers_;
  at::Tensor norm_;  // [width], the weight of the last RMSNorm.
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_VIM_BACKBONE_H_
