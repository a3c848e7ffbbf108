#include "model/heads/pyramid_fusion.h"

#include <numeric>
#include <utility>

#include "ATen/ops/cat.h"
#include "ATen/ops/upsample_bilinear2d.h"
#include "model/layers/conv_module.h"
#include "model/ops/ops.h"

namespace sfmamba::heads {
namespace {

// Returns a convolution's weight for input channels [begin, begin + count).
at::Tensor Slice(const at::Tensor& weight, int begin, int count) {
  return weight.narrow(1, begin, count).contiguous();
}

// Converts a 3x3 convolution [out, in, 3, 3] to a linear layer [9 * out, in]
// that computes a pixel's contributions to all its neighbours.
layers::Weights Taps(const at::Tensor& weight) {
  return {weight.permute({2, 3, 0, 1}).reshape({-1, weight.size(1)}), {}};
}

}  // namespace

PyramidFusion::PyramidFusion(const std::vector<int>& in_channels,
                             int out_channels, int size,
                             const weights::StateDict::Scope& scope,
                             const layers::LayerOptions& options)
    : first_([&] {
        const int all =
            std::accumulate(in_channels.begin(), in_channels.end(), 0);
        const layers::Convolution::Shape whole{all, out_channels, /*stride=*/1,
                                               size};
        const layers::Weights stored =
            layers::Convolution::Take(scope.Sub("conv"), whole, /*bias=*/false);
        const layers::BatchNorm norm = layers::BatchNorm::Take(
            scope.Sub("bn"), out_channels, layers::kConvModuleEps);
        if (!options.fuse || ops::OnDevice(stored.weight)) {
          return layers::Convolution(whole, stored, norm,
                                     layers::Activation::kRelu, options);
        }
        const layers::Weights weights = layers::FoldBatchNorm(stored, norm);
        int begin = in_channels[0];
        for (size_t i = 1; i < in_channels.size(); ++i) {
          taps_.emplace_back(Taps(Slice(weights.weight, begin, in_channels[i])),
                             at::Tensor(), options);
          begin += in_channels[i];
        }
        const layers::Convolution::Shape shape{in_channels[0],   out_channels,
                                               /*stride=*/1,     size,
                                               /*kernel=*/3,
                                               /*winograd=*/true};
        return layers::Convolution(
            shape, {Slice(weights.weight, 0, in_channels[0]), weights.bias},
            std::nullopt, layers::Activation::kNone, options);
      }()) {}

at::Tensor PyramidFusion::Forward(const std::vector<at::Tensor>& maps) const {
  const int64_t height = maps[0].size(2), width = maps[0].size(3);
  if (taps_.empty()) {
    std::vector<at::Tensor> resized = {maps[0]};
    for (size_t i = 1; i < maps.size(); ++i) {
      resized.push_back(at::upsample_bilinear2d(maps[i], {height, width},
                                                /*align_corners=*/false));
    }
    return first_.Forward(at::cat(resized, 1)).to(at::kFloat);
  }
  at::Tensor y = first_.Forward(maps[0])
                     .to(at::kFloat)
                     .contiguous(at::MemoryFormat::ChannelsLast);
  for (size_t i = 0; i < taps_.size(); ++i) {
    const at::Tensor pixels =
        maps[i + 1].permute({0, 2, 3, 1}).to(at::kFloat).contiguous();
    ops::AddConv3x3AfterResize(taps_[i].Forward(pixels).to(at::kFloat), y);
  }
  return y.relu_();
}

}  // namespace sfmamba::heads
