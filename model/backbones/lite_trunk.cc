#include "model/backbones/lite_trunk.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sfmamba::backbones {
namespace {

constexpr double kEps = 1e-3;  // Only EfficientNet uses this eps.
constexpr int kStemChannels = 32;

struct BlockShape {
  int kernel, stride, expansion, in, out;
  int map_stride = 0;  // The stride of the map if it is returned, or 0.
};

constexpr BlockShape kBlocks[] = {
    {3, 1, 1, kStemChannels, 16},            //
    {3, 2, 6, 16, 24},                       //
    {3, 1, 6, 24, 24, /*map_stride=*/4},     //
    {5, 2, 6, 24, 40},                       //
    {5, 1, 6, 40, 40, /*map_stride=*/8},     //
    {3, 2, 6, 40, 80},                       //
    {3, 1, 6, 80, 80},                       //
    {3, 1, 6, 80, 80},                       //
    {5, 1, 6, 80, 112},                      //
    {5, 1, 6, 112, 112},                     //
    {5, 1, 6, 112, 112, /*map_stride=*/16},  //
    {5, 2, 6, 112, 192, /*map_stride=*/32},
};

layers::Convolution TakeUnit(const weights::StateDict::Scope& scope,
                             const layers::Convolution::Shape& shape,
                             ops::Activation activation,
                             const ops::Implementation& implementation) {
  return layers::Convolution(
      shape,
      layers::Convolution::Take(scope.Sub("conv"), shape, /*bias=*/false),
      ops::BatchNorm::Take(scope.Sub("bn"), shape.out, kEps), activation,
      implementation);
}

}  // namespace

LiteTrunk::LiteTrunk(const weights::StateDict::Scope& scope, int stride,
                     int image_size, const ops::Implementation& implementation)
    : stem_(
          layers::Convolution::Take(scope.Sub("stem.conv"), {3, kStemChannels},
                                    /*bias=*/false),
          ops::BatchNorm::Take(scope.Sub("stem.bn"), kStemChannels, kEps),
          ops::Activation::kRelu6, image_size, /*feeds_products=*/false,
          implementation) {
  int size = (image_size + 1) / 2;
  for (const BlockShape& shape : kBlocks) {
    const weights::StateDict::Scope block =
        scope.Sub(absl::StrCat("blocks.", blocks_.size()));
    const int width = shape.in * shape.expansion;
    // The first block does not expand the channels.
    std::optional<layers::Convolution> expand;
    if (shape.expansion > 1) {
      expand = TakeUnit(block.Sub("expand"),
                        {shape.in, width, /*stride=*/1, size, /*kernel=*/1},
                        ops::Activation::kRelu6, implementation);
    }
    layers::Convolution depthwise =
        TakeUnit(block.Sub("depthwise"),
                 {width, width, shape.stride, size, shape.kernel,
                  /*groups=*/width},
                 ops::Activation::kRelu6, implementation);
    size = (size + shape.stride - 1) / shape.stride;
    layers::Convolution project =
        TakeUnit(block.Sub("project"),
                 {width, shape.out, /*stride=*/1, size, /*kernel=*/1},
                 ops::Activation::kNone, implementation);
    blocks_.push_back({std::move(expand), std::move(depthwise),
                       std::move(project),
                       shape.stride == 1 && shape.in == shape.out});
    if (shape.map_stride == stride) break;
  }
}

at::Tensor LiteTrunk::Block::Forward(at::Tensor x) const {
  const at::Tensor wide = depthwise.Forward(expand ? expand->Forward(x) : x);
  if (!residual) return project.Forward(wide);
  project.AddTo(x, wide);
  return x;
}

std::vector<at::Tensor> LiteTrunk::Forward(
    const ops::ImageBatch& images) const {
  std::vector<at::Tensor> maps;
  at::Tensor x = stem_.Forward(images);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    // A residual block overwrites its input. This is safe because no such block
    // reads a map that is returned.
    x = blocks_[i].Forward(std::move(x));
    if (kBlocks[i].map_stride > 0) maps.push_back(x);
  }
  return maps;
}

}  // namespace sfmamba::backbones
