#include "model/ops/cuda/cuda_ops.h"

#include <vector>

#include "ATen/ops/empty.h"
#include "kernels/linear/bias_activation_cuda.h"
#include "kernels/linear/depthwise_convolution_cuda.h"
#include "kernels/pixels/image_normalize_cuda.h"
#include "kernels/pixels/pixel_convolution_cuda.h"
#include "kernels/scan/cross_scan_cuda.h"
#include "kernels/scan/selective_scan_cuda.h"
#include "kernels/sequence/depthwise_conv1d_cuda.h"
#include "kernels/sequence/layer_norm_cuda.h"
#include "kernels/sequence/token_mean_cuda.h"
#include "kernels/sequence/window_partition_cuda.h"
#include "model/ops/compute_type.h"
#include "model/ops/cuda/cuda_dispatch.h"
#include "model/ops/kernel_types.h"
#include "model/ops/scan_arguments.h"

namespace sfmamba::ops {
namespace {

// Calls body(a, b), where a and b have the C++ types of the elements of x and
// of y. Both types must be equal, or x must be fp32.
template <typename Body>
void DispatchPair(const at::Tensor& x, const at::Tensor& y, Body body) {
  TORCH_CHECK(
      x.scalar_type() == y.scalar_type() || x.scalar_type() == at::kFloat,
      "expected fp32 or ", y.scalar_type(), ", got ", x.scalar_type());
  CudaDispatch(y, [&](auto type) {
    if (x.scalar_type() == at::kFloat) {
      body(float(), type);
    } else {
      body(type, type);
    }
  });
}

tuning::ScanShape ShapeOf(const at::Tensor& u, int64_t states,
                          const kernels::PackedSequences& sequences) {
  tuning::ScanShape shape;
  shape.type = ScanType(u.scalar_type());
  shape.channels = u.size(-1);
  shape.states = states;
  shape.sequences = sequences.count;
  shape.length = sequences.length;
  return shape;
}

template <typename T, typename X>
kernels::WindowArgs<T, X> MakeWindowArgs(const at::Tensor& map,
                                         const WindowGrid& grid, int margin,
                                         const at::Tensor& windows) {
  TORCH_CHECK(map.stride(3) == 1 && windows.is_contiguous(),
              "expected a map with a dense last axis and contiguous windows");
  kernels::WindowArgs<T, X> args;
  args.images = map.size(0);
  args.map_height = map.size(1);
  args.map_width = map.size(2);
  args.height = grid.height;
  args.width = grid.width;
  args.channels = map.size(3);
  args.map = Data<T>(map);
  args.image_stride = map.stride(0);
  args.row_stride = map.stride(1);
  args.pixel_stride = map.stride(2);
  args.tokens = Data<X>(windows);
  args.token_stride = map.size(3);
  args.margin = margin;
  return args;
}

// Returns the arguments to compute y = LayerNorm(x + add), or LayerNorm(x) if
// `add` is undefined. Each sequence has `length` tokens. `swap` is false in the
// result.
template <typename X, typename Y>
kernels::LayerNormCudaArgs<X, Y> MakeNormArgs(
    const at::Tensor& x, const at::Tensor& add, const at::Tensor& gamma,
    const at::Tensor& beta, float eps, int64_t length, const at::Tensor& y) {
  TORCH_CHECK(
      !add.defined() || (add.scalar_type() == y.scalar_type() &&
                         add.is_contiguous() && add.numel() == x.numel()),
      "expected as many values to add, contiguous, of ", y.scalar_type());
  const int64_t channels = x.size(-1);
  kernels::LayerNormCudaArgs<X, Y> args{};
  args.channels = channels;
  args.x = Data<X>(x);
  args.x_stride = channels;
  if (add.defined()) args.add = Data<Y>(add);
  args.add_stride = channels;
  args.y = Data<Y>(y);
  args.y_stride = channels;
  args.gamma = Floats(gamma);
  args.beta = Floats(beta);
  args.eps = eps;
  args.sequences = {static_cast<int>(x.numel() / channels / length),
                    static_cast<int>(length)};
  return args;
}

std::vector<kernels::CudaImage> ToCuda(const std::vector<ImagePixels>& images) {
  std::vector<kernels::CudaImage> sources;
  for (const ImagePixels& image : images) {
    sources.push_back({image.rgb, image.height, image.width});
  }
  return sources;
}

// Returns the arguments for y = activation(x + bias), where x and y are [rows,
// channels] and contiguous.
template <typename T>
kernels::BiasActivationArgs<T> MakeActivationArgs(
    const at::Tensor& x, const at::Tensor& bias,
    kernels::CudaActivation activation, const at::Tensor& y) {
  return {x.size(0),  x.size(1), Data<T>(x), x.size(1),
          Data<T>(y), x.size(1), activation, Floats(bias)};
}

}  // namespace

void CudaOps::LayerNorm(at::Tensor& x, const at::Tensor& add,
                        const at::Tensor& gamma, const at::Tensor& beta,
                        float eps, int64_t length, bool swap,
                        const at::Tensor& y) const {
  // The kernel needs the sequences only to exchange their first and last
  // tokens. Without a swap, each token can be passed as a sequence of length 1.
  const int64_t unit = swap ? length : 1;
  DispatchPair(x, y, [&](auto x_type, auto y_type) {
    auto args = MakeNormArgs<decltype(x_type), decltype(y_type)>(
        x, add, gamma, beta, eps, unit, y);
    args.swap = swap;
    CheckLaunch(kernels::LayerNormCuda(args, stream_of_(x)));
  });
}

void CudaOps::LayerNormKeeping(const at::Tensor& x, const at::Tensor& add,
                               const at::Tensor& gamma, const at::Tensor& beta,
                               float eps, int64_t first, const at::Tensor& kept,
                               const at::Tensor& y) const {
  DispatchPair(x, y, [&](auto x_type, auto y_type) {
    using X = decltype(x_type);
    auto args = MakeNormArgs<X, decltype(y_type)>(x, add, gamma, beta, eps,
                                                  x.size(1), y);
    args.kept = Data<X>(kept);
    args.kept_first = static_cast<int>(first);
    args.kept_count = static_cast<int>(kept.size(1));
    CheckLaunch(kernels::LayerNormCuda(args, stream_of_(x)));
  });
}

void CudaOps::DepthwiseConvSilu(absl::Span<const ShortConv> convs, int left,
                                int64_t length) const {
  TORCH_CHECK(convs.size() <= 2, "expected two convolutions at most, got ",
              convs.size());
  CudaDispatch(convs[0].x, [&](auto type) {
    using T = decltype(type);
    kernels::DepthwiseConv1dArgs<T> parts[2];
    for (size_t i = 0; i < convs.size(); ++i) {
      const ShortConv& conv = convs[i];
      kernels::DepthwiseConv1dArgs<T>& args = parts[i];
      args.channels = conv.x.size(1);
      args.taps = conv.weight.size(0);
      args.left = left;
      args.x = Data<T>(conv.x);
      args.x_stride = conv.x.stride(0);
      args.y = Data<T>(conv.y);
      args.y_stride = conv.y.stride(0);
      args.weight = Floats(conv.weight);
      args.bias = Floats(conv.bias);
      args.silu = true;
      args.sequences = Sequences(conv.x, length);
    }
    CheckLaunch(kernels::DepthwiseConv1dCuda<T>(parts, convs.size(),
                                                stream_of_(convs[0].x)));
  });
}

void CudaOps::SelectiveScan(const Scan& scan, const at::Tensor& u,
                            const at::Tensor& dt, const at::Tensor& B,
                            const at::Tensor& C, int64_t length, int64_t rows,
                            const at::Tensor& y) const {
  TORCH_CHECK(scan.chooser != nullptr, "a device's scan needs a chooser");
  CudaDispatch(u, [&](auto type) {
    const auto args =
        ScanArguments<decltype(type)>(scan, u, dt, B, C, length, y);
    const kernels::ScanPlan plan = scan.chooser->Plan(
        ShapeOf(u, args.states, args.sequences), static_cast<int>(rows));
    const int64_t bytes = kernels::ScanScratchBytes(plan, args.sequences.count,
                                                    args.channels, args.states);
    const at::Tensor scratch = at::empty({bytes}, u.options().dtype(at::kByte));
    CheckLaunch(kernels::SelectiveScanCuda(
        args, plan, bytes > 0 ? scratch.data_ptr() : nullptr, stream_of_(u)));
  });
}

void CudaOps::CrossScan(const Scan& scan, const at::Tensor& u,
                        const at::Tensor& dt, const at::Tensor& B,
                        const at::Tensor& C, const at::Tensor& y) const {
  TORCH_CHECK(scan.chooser != nullptr, "a device's scan needs a chooser");
  CudaDispatch(u, [&](auto type) {
    using T = decltype(type);
    kernels::CrossScanArgs<T> args;
    args.images = u.size(0);
    args.height = u.size(1);
    args.width = u.size(2);
    args.channels = u.size(3);
    args.u = Data<T>(u);
    args.dt = Data<T>(dt);
    args.B = Data<T>(B);
    args.C = Data<T>(C);
    args.bc_stride = B.stride(0);
    args.bc_direction_stride = B.stride(1);
    args.A = Floats(scan.A);
    args.D = Floats(scan.D);
    args.bias = Floats(scan.bias);
    args.y = Data<float>(y);
    const kernels::PackedSequences walks{4 * args.images,
                                         args.height * args.width};
    const kernels::ScanPlan plan = scan.chooser->Plan(
        ShapeOf(u, /*states=*/1, walks), /*rows=*/walks.count);
    const int64_t bytes =
        kernels::ScanScratchBytes(plan, walks.count, args.channels,
                                  /*states=*/1);
    const at::Tensor scratch = at::empty({bytes}, u.options().dtype(at::kByte));
    CheckLaunch(kernels::CrossScanCuda(
        args, plan, bytes > 0 ? scratch.data_ptr() : nullptr, stream_of_(u)));
  });
}

void CudaOps::Activate(const at::Tensor& x, const at::Tensor& bias,
                       kernels::CudaActivation activation) const {
  CudaDispatch(x, [&](auto type) {
    CheckLaunch(kernels::BiasActivationCuda(
        MakeActivationArgs<decltype(type)>(x, bias, activation, x),
        stream_of_(x)));
  });
}

void CudaOps::AddBiased(const at::Tensor& x, const at::Tensor& bias,
                        const at::Tensor& y) const {
  CudaDispatch(x, [&](auto type) {
    using T = decltype(type);
    kernels::BiasActivationArgs<T> args =
        MakeActivationArgs<T>(x, bias, kernels::CudaActivation::kNone, y);
    args.add = Data<T>(y);
    args.add_stride = args.y_stride;
    CheckLaunch(kernels::BiasActivationCuda(args, stream_of_(x)));
  });
}

void CudaOps::FillEndsWithMean(const at::Tensor& x) const {
  const int64_t length = x.size(1), channels = x.size(2);
  CudaDispatch(x, [&](auto type) {
    using T = decltype(type);
    kernels::TokenMeanArgs<T> args;
    args.channels = channels;
    args.x = Data<T>(x);
    args.x_stride = channels;
    args.margin = 1;
    args.mean = Data<T>(x);
    args.mean_stride = length * channels;
    args.copy = Data<T>(x) + (length - 1) * channels;
    args.sequences = {static_cast<int>(x.size(0)), static_cast<int>(length)};
    CheckLaunch(kernels::TokenMeanCuda(args, stream_of_(x)));
  });
}

void CudaOps::ConvolveDepthwise(const at::Tensor& x,
                                const DepthwiseConvWeights& weights,
                                const at::Tensor& y) const {
  CudaDispatch(x, [&](auto type) {
    using T = decltype(type);
    kernels::DepthwiseConvolutionCudaArgs<T> args;
    args.count = x.size(0);
    args.height = x.size(2);
    args.width = x.size(3);
    args.channels = x.size(1);
    args.kernel = weights.weight.size(0);
    args.stride = weights.stride;
    args.x = Data<T>(x);
    args.weight = Floats(weights.weight);
    args.bias = Floats(weights.bias);
    args.activation = weights.activation;
    args.y = Data<T>(y);
    CheckLaunch(kernels::DepthwiseConvolutionCuda(args, stream_of_(x)));
  });
}

void CudaOps::NormalizeImages(const PixelBatch& pixels,
                              const at::Tensor& y) const {
  const std::vector<kernels::CudaImage> images = ToCuda(pixels.images);
  CudaDispatch(y, [&](auto type) {
    using T = decltype(type);
    kernels::ImageNormalizeCudaArgs<T> args;
    args.count = images.size();
    args.images = images.data();
    args.planar = pixels.planar;
    args.height = pixels.height;
    args.width = pixels.width;
    args.y = Data<T>(y);
    args.image_stride = y.stride(0);
    args.row_stride = y.stride(2);
    args.pixel_stride = y.stride(3);
    args.channel_stride = y.stride(1);
    args.mean = pixels.mean;
    args.std = pixels.std;
    CheckLaunch(kernels::ImageNormalizeCuda(args, stream_of_(y)));
  });
}

void CudaOps::ConvolvePixels(const PixelBatch& pixels,
                             const PixelConvWeights& weights,
                             const at::Tensor& y) const {
  const std::vector<kernels::CudaImage> images = ToCuda(pixels.images);
  CudaDispatch(y, [&](auto type) {
    using T = decltype(type);
    kernels::PixelConvolutionArgs<T> args;
    args.count = images.size();
    args.images = images.data();
    args.planar = pixels.planar;
    args.height = pixels.height;
    args.width = pixels.width;
    args.channels = y.size(1);
    args.weight = Floats(weights.weight);
    args.bias = Floats(weights.bias);
    args.mean = pixels.mean;
    args.std = pixels.std;
    args.activation = weights.activation;
    args.y = Data<T>(y);
    CheckLaunch(kernels::PixelConvolutionCuda(args, stream_of_(y)));
  });
}

void CudaOps::WindowPartition(const at::Tensor& map, const WindowGrid& grid,
                              WindowEnds ends,
                              const at::Tensor& windows) const {
  DispatchPair(windows, map, [&](auto x_type, auto map_type) {
    auto args = MakeWindowArgs<decltype(map_type), decltype(x_type)>(
        map, grid, /*margin=*/ends == WindowEnds::kNone ? 0 : 1, windows);
    args.mean = ends == WindowEnds::kMean;
    CheckLaunch(kernels::WindowPartitionCuda(args, stream_of_(map)));
  });
}

void CudaOps::WindowReverse(const at::Tensor& windows, const WindowGrid& grid,
                            const at::Tensor& map) const {
  DispatchPair(windows, map, [&](auto x_type, auto map_type) {
    CheckLaunch(kernels::WindowReverseCuda(
        MakeWindowArgs<decltype(map_type), decltype(x_type)>(
            map, grid, /*margin=*/0, windows),
        stream_of_(map)));
  });
}

}  // namespace sfmamba::ops
