#include "model/backbones/lite_trunk.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sfmamba {
namespace {

constexpr double kEps = 1e-3;
constexpr int kStemChannels = 32;

struct BlockShape {
  int kernel, stride, expansion, in, out;
  bool is_map;  // The last of its stride.
};

constexpr BlockShape kBlocks[] = {
    {3, 1, 1, kStemChannels, 16, false},  //
    {3, 2, 6, 16, 24, false},             //
    {3, 1, 6, 24, 24, true},              //
    {5, 2, 6, 24, 40, false},             //
    {5, 1, 6, 40, 40, true},              //
    {3, 2, 6, 40, 80, false},             //
    {3, 1, 6, 80, 80, false},             //
    {3, 1, 6, 80, 80, false},             //
    {5, 1, 6, 80, 112, false},            //
    {5, 1, 6, 112, 112, false},           //
    {5, 1, 6, 112, 112, true},
};

Convolution TakeUnit(const StateDict::Scope& scope,
                     const Convolution::Shape& shape, Activation activation,
                     const LayerOptions& options) {
  return Convolution(
      shape, Convolution::Take(scope.Sub("conv"), shape, /*bias=*/false),
      BatchNorm::Take(scope.Sub("bn"), shape.out, kEps), activation, options);
}

}  // namespace

LiteTrunk::LiteTrunk(const StateDict::Scope& scope, int image_size,
                     const LayerOptions& options)
    : stem_(Convolution::Take(scope.Sub("stem.conv"), {3, kStemChannels},
                              /*bias=*/false),
            BatchNorm::Take(scope.Sub("stem.bn"), kStemChannels, kEps),
            Activation::kRelu6, image_size, options) {
  int size = (image_size + 1) / 2;
  for (const BlockShape& shape : kBlocks) {
    const StateDict::Scope block =
        scope.Sub(absl::StrCat("blocks.", blocks_.size()));
    const int width = shape.in * shape.expansion;
    std::optional<Convolution> expand;
    if (shape.expansion > 1) {
      expand = TakeUnit(block.Sub("expand"),
                        {shape.in, width, /*stride=*/1, size, /*kernel=*/1},
                        Activation::kRelu6, options);
    }
    Convolution depthwise =
        TakeUnit(block.Sub("depthwise"),
                 {width, width, shape.stride, size, shape.kernel,
                  /*winograd=*/false, /*groups=*/width},
                 Activation::kRelu6, options);
    size = (size + shape.stride - 1) / shape.stride;
    Convolution project =
        TakeUnit(block.Sub("project"),
                 {width, shape.out, /*stride=*/1, size, /*kernel=*/1},
                 Activation::kNone, options);
    blocks_.push_back({std::move(expand), std::move(depthwise),
                       std::move(project),
                       shape.stride == 1 && shape.in == shape.out});
  }
}

at::Tensor LiteTrunk::Block::Forward(at::Tensor x) const {
  const at::Tensor wide = depthwise.forward(expand ? expand->forward(x) : x);
  if (!residual) return project.forward(wide);
  project.AddTo(x, wide);
  return x;
}

std::vector<at::Tensor> LiteTrunk::Forward(const ImageBatch& images) const {
  std::vector<at::Tensor> maps;
  at::Tensor x = stem_.forward(images);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    // No residual follows a map, so that none is written over.
    x = blocks_[i].Forward(std::move(x));
    if (kBlocks[i].is_map) maps.push_back(x);
  }
  return maps;
}

}  // namespace sfmamba
