#ifndef SFMAMBA_MODEL_BACKBONES_VIM_BACKBONE_H_
#define SFMAMBA_MODEL_BACKBONES_VIM_BACKBONE_H_

#include <memory>
#include <vector>

#include "model/backbones/auxiliary_tokens.h"
#include "model/backbones/backbone.h"
#include "model/backbones/mixer.h"
#include "model/layers/linear.h"

namespace sfmamba::backbones {

// Vim: patches of 16 x 16 pixels with a class token in their middle, through
// one Vim mixer after another. Its one feature is the class token, normalised,
// as a map of one pixel. Source: Vim (arXiv 2401.09417), 3.2; with auxiliary
// tokens SF-Mamba (arXiv 2603.16423).
class VimBackbone : public Backbone {
 public:
  static constexpr int kPatch = 16;  // Pixels a side.

  // Images have `image_size` pixels a side, a multiple of kPatch, always: the
  // position embedding knows no other size.
  VimBackbone(const model::BackboneConfig& config, int image_size,
              const weights::StateDict::Scope& scope,
              const layers::LayerOptions& options);

  layers::Features Forward(const layers::ImageBatch& images,
                           int64_t fold_rows) const override;
  // One sequence an image, whatever its size.
  std::vector<int64_t> Sequences(int64_t images, int64_t height,
                                 int64_t width) const override;

 private:
  struct Layer {
    at::Tensor norm;  // [width], an RMSNorm's weight.
    std::unique_ptr<Mixer> mixer;
  };

  // [N, 3, H, W] to the sequences [N, L, width], fp32.
  at::Tensor Embed(const at::Tensor& images) const;

  int patches_;  // Of an image.
  layers::Linear
      patch_embed_;  // A patch's pixels, [3, kPatch, kPatch], to a token.
  at::Tensor class_token_;  // [1, 1, width]
  at::Tensor positions_;    // [1, patches + 1, width], to be added.
  AuxiliaryTokens tokens_;
  std::vector<Layer> layers_;
  at::Tensor norm_;  // [width], the last RMSNorm's weight.
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_VIM_BACKBONE_H_
