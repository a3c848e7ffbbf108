#include "model/backbones/vim_backbone.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/rms_norm.h"
#include "absl/strings/str_cat.h"
#include "model/backbones/vim_mixer.h"

namespace sfmamba::backbones {
namespace {

constexpr int kExpand = 2;
constexpr double kEps = 1e-5;

// Takes the convolution of patches as a linear layer. This is possible because
// its stride equals its kernel size.
ops::Weights TakePatchEmbed(const weights::StateDict::Scope& scope, int width) {
  constexpr int kSide = VimBackbone::kPatch;
  return {scope.Take("weight", {width, 3, kSide, kSide}).view({width, -1}),
          scope.Take("bias", {width})};
}

// Maps images [N, 3, H, W] to [N, patches, 3 * kPatch * kPatch]. The patches
// are in row-major order.
at::Tensor CutPatches(const at::Tensor& images) {
  constexpr int kSide = VimBackbone::kPatch;
  const int64_t count = images.size(0);
  return images.unfold(2, kSide, kSide)
      .unfold(3, kSide, kSide)  // [N, 3, rows, columns, kSide, kSide]
      .permute({0, 2, 3, 1, 4, 5})
      .reshape({count, -1, 3 * kSide * kSide});
}

}  // namespace

VimBackbone::VimBackbone(const model::BackboneConfig& config, int image_size,
                         const weights::StateDict::Scope& scope,
                         const ops::Implementation& implementation)
    : implementation_(implementation),
      patches_((image_size / kPatch) * (image_size / kPatch)),
      patch_embed_(
          {TakePatchEmbed(scope.Sub("patch_embed.proj"), config.vim_dim), {}},
          implementation),
      class_token_(scope.Take("cls_token", {1, 1, config.vim_dim})),
      positions_(scope.Take("pos_embed", {1, patches_ + 1, config.vim_dim})),
      tokens_(scope, config.vim_dim, config, implementation),
      norm_(scope.Take("norm_f.weight", {config.vim_dim})) {
  const VimMixer::Shape shape = {config.vim_dim, kExpand, config.vim_backward};
  for (int i = 0; i < config.vim_depth; ++i) {
    const weights::StateDict::Scope layer =
        scope.Sub(absl::StrCat("layers.", i));
    layers_.push_back(
        {layer.Take("norm.weight", {config.vim_dim}),
         std::make_unique<VimMixer>(layer.Sub("mixer"), shape, at::Tensor(),
                                    implementation)});
  }
}

at::Tensor VimBackbone::Embed(const at::Tensor& images) const {
  // The patches are converted, because the residual stream is fp32.
  const at::Tensor patches =
      patch_embed_.Forward(CutPatches(images)).to(at::kFloat);
  const int64_t middle = patches_ / 2;
  const at::Tensor class_tokens =
      class_token_.expand({images.size(0), 1, patches.size(2)});
  const at::Tensor x = at::cat({patches.narrow(1, 0, middle), class_tokens,
                                patches.narrow(1, middle, patches_ - middle)},
                               1);
  return tokens_.Attach(x + positions_);
}

layers::Features VimBackbone::Forward(const ops::ImageBatch& images,
                                      int64_t fold_rows) const {
  const at::Tensor x = Embed(implementation_.Values(
      images));  // The sum of Vim's residual and hidden state.
  const int64_t count = x.size(0), length = x.size(1), width = x.size(2);
  ops::Residual residual(
      x.view({fold_rows > 0 ? fold_rows : count, -1, width}));
  for (size_t i = 0; i < layers_.size(); ++i) {
    at::Tensor& sum = residual.Sum();
    // The paper exchanges the auxiliary tokens after each block. Here, each
    // block except the first exchanges them before it runs. An exchange after
    // the last block would have no effect, because only the class token is
    // read.
    if (tokens_.swaps() && i > 0) sum = ops::SwapEnds(sum, length);
    layers_[i].mixer->AddTo(
        residual, at::rms_norm(sum, {width}, layers_[i].norm, kEps), length);
  }
  // If there is an auxiliary token before the sequence, it shifts the class
  // token by one.
  const int64_t middle = patches_ / 2 + (tokens_.attaches() ? 1 : 0);
  const at::Tensor class_tokens =
      residual.Sum().view({count, length, width}).select(1, middle);
  return {at::rms_norm(class_tokens, {width}, norm_, kEps)
              .view({count, width, 1, 1})};
}

std::vector<int64_t> VimBackbone::Sequences(int64_t images, int64_t height,
                                            int64_t width) const {
  return {images};
}

}  // namespace sfmamba::backbones
