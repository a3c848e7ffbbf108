#include "absl/strings/str_cat.h"
#include "kernels/base/bfloat16.h"
#include "kernels/cuda/gpu_timer_cuda.h"
#include "kernels/linear/bias_activation_cuda.h"
#include "kernels/linear/depthwise_convolution_cuda.h"
#include "kernels/sequence/depthwise_conv1d_cuda.h"
#include "kernels/sequence/layer_norm_cuda.h"
#include "kernels/sequence/token_mean_cuda.h"
#include "tests/gpu/benchmark.h"
#include "tests/gpu/pass_figures.h"
#include "tests/gpu/random_values.h"
#include "tests/kernels/cuda/device_memory.h"

namespace sfmamba {
namespace {

// The activations of a stage, and the parameters of the kernels that read them.
class Stage {
 public:
  Stage(int sequences, int length, int channels)
      : segments_{sequences, length},
        tokens_(sequences * length),
        channels_(channels),
        wide_(RandomValues<kernels::BFloat16>(size_t{4} * tokens_ * channels)),
        y_(size_t{4} * tokens_ * channels),
        parameters_(RandomValues<float>(size_t{4} * channels)) {}

  int tokens() const { return tokens_; }
  int channels() const { return channels_; }

  // Convolves each half of the channels along the tokens, with 3 taps.
  absl::Status Convolve(kernels::CudaStream stream) const {
    const int half = channels_ / 2;
    kernels::DepthwiseConv1dArgs<kernels::BFloat16> parts[2] = {};
    for (int i = 0; i < 2; ++i) {
      kernels::DepthwiseConv1dArgs<kernels::BFloat16>& part = parts[i];
      part.channels = half;
      part.taps = 3;
      part.left = 1;
      part.x = wide_.data() + i * half;
      part.y = y_.data() + i * half;
      part.x_stride = part.y_stride = channels_;
      part.weight = parameters_.data();
      part.silu = true;
      part.sequences = segments_;
    }
    return kernels::DepthwiseConv1dCuda(parts, 2, stream);
  }

  absl::Status Normalize(kernels::CudaStream stream) const {
    kernels::LayerNormCudaArgs<kernels::BFloat16, kernels::BFloat16> args{};
    args.channels = channels_;
    args.x = wide_.data();
    args.y = y_.data();
    args.x_stride = args.y_stride = channels_;
    args.gamma = parameters_.data();
    args.beta = parameters_.data() + channels_;
    args.eps = 1e-5f;
    args.sequences = segments_;
    return kernels::LayerNormCuda(args, stream);
  }

  absl::Status Mean(kernels::CudaStream stream) const {
    kernels::TokenMeanArgs<kernels::BFloat16> args{};
    args.channels = channels_;
    args.x = wide_.data();
    args.x_stride = channels_;
    args.mean = y_.data();
    args.mean_stride = channels_;
    args.sequences = segments_;
    return kernels::TokenMeanCuda(args, stream);
  }

  // Computes GELU on the channels of the MLP, four times as many as the stage
  // has.
  absl::Status Gelu(kernels::CudaStream stream) const {
    kernels::BiasActivationArgs<kernels::BFloat16> args{};
    args.rows = tokens_;
    args.channels = 4 * channels_;
    args.x = wide_.data();
    args.y = y_.data();
    args.x_stride = args.y_stride = 4 * channels_;
    args.activation = kernels::CudaActivation::kGeluErf;
    args.bias = parameters_.data();
    return kernels::BiasActivationCuda(args, stream);
  }

 private:
  const kernels::PackedSequences segments_;
  const int tokens_, channels_;
  const kernels::DeviceArray<kernels::BFloat16> wide_,
      y_;  // [tokens, 4 * channels]
  const kernels::DeviceArray<float> parameters_;
};

// The shape of the maps for a depthwise convolution.
struct MapShape {
  int count, side, channels, kernel, stride;

  int64_t pixels() const { return int64_t{count} * side * side; }
  int64_t output_pixels() const { return pixels() / (stride * stride); }
};

class Maps {
 public:
  // The side must be a multiple of the stride.
  explicit Maps(const MapShape& shape)
      : shape_(shape),
        x_(RandomValues<kernels::BFloat16>(shape.pixels() * shape.channels)),
        y_(shape.output_pixels() * shape.channels),
        weight_(RandomValues<float>(size_t{1} * shape.kernel * shape.kernel *
                                    shape.channels)) {}

  absl::Status Convolve(kernels::CudaStream stream) const {
    kernels::DepthwiseConvolutionCudaArgs<kernels::BFloat16> args{};
    args.count = shape_.count;
    args.height = args.width = shape_.side;
    args.channels = shape_.channels;
    args.kernel = shape_.kernel;
    args.stride = shape_.stride;
    args.x = x_.data();
    args.weight = weight_.data();
    args.bias = weight_.data();
    args.activation = kernels::CudaActivation::kRelu6;
    args.y = y_.data();
    return kernels::DepthwiseConvolutionCuda(args, stream);
  }

 private:
  const MapShape shape_;
  const kernels::DeviceArray<kernels::BFloat16> x_, y_;
  const kernels::DeviceArray<float> weight_;
};

// Measures `enqueue` and writes `figure` with its times.
absl::Status Measure(PassFigure figure,
                     const kernels::GpuTimer::Enqueue& enqueue,
                     kernels::GpuTimer& timer, const Setting& setting,
                     const WriteLine& write) {
  const auto warm = timer.Warm(enqueue, {});
  if (!warm.ok()) return warm.status();
  const auto cold = timer.Cold(enqueue, {});
  if (!cold.ok()) return cold.status();
  figure.warm = *warm;
  figure.cold = *cold;
  write(Json(figure, setting));
  return absl::OkStatus();
}

absl::Status MeasureStages(bool tiny, kernels::GpuTimer& timer,
                           const Setting& setting, const WriteLine& write) {
  // Stage 3 of T and B, and stage 4 of T, with a batch of 128.
  const struct {
    int length, channels;
  } kStages[] = {{198, 320}, {51, 640}, {198, 512}};
  const struct {
    const char* name;
    absl::Status (Stage::*run)(kernels::CudaStream) const;
    int bytes;  // Bytes read and written per token and channel.
  } kPasses[] = {{"conv1d + SiLU, both halves", &Stage::Convolve, 4},
                 {"LayerNorm", &Stage::Normalize, 4},
                 {"mean over tokens", &Stage::Mean, 2},
                 {"bias + GELU of the MLP", &Stage::Gelu, 16}};
  for (const auto& shape : kStages) {
    const Stage stage =
        tiny ? Stage(2, 3, 16) : Stage(128, shape.length, shape.channels);
    for (const auto& pass : kPasses) {
      PassFigure figure = {pass.name, stage.tokens(), stage.channels()};
      figure.bytes = double(pass.bytes) * stage.tokens() * stage.channels();
      const absl::Status measured = Measure(
          figure,
          [&](kernels::CudaStream stream) { return (stage.*pass.run)(stream); },
          timer, setting, write);
      if (!measured.ok()) return measured;
    }
  }
  return absl::OkStatus();
}

// Measures three layers of the default classifier with a batch of 128.
absl::Status MeasureDepthwise(bool tiny, kernels::GpuTimer& timer,
                              const Setting& setting, const WriteLine& write) {
  for (MapShape shape : {MapShape{128, 112, 96, 3, 2},
                         {128, 28, 240, 5, 1},
                         {128, 14, 672, 5, 1}}) {
    if (tiny) shape = {1, 4, 16, shape.kernel, shape.stride};
    const Maps maps(shape);
    PassFigure figure = {absl::StrCat("depthwise ", shape.kernel, "x",
                                      shape.kernel, ", stride ", shape.stride),
                         static_cast<int>(shape.output_pixels()),
                         shape.channels};
    figure.bytes = double(sizeof(kernels::BFloat16)) * shape.channels *
                   (shape.pixels() + shape.output_pixels());
    const absl::Status measured = Measure(
        figure,
        [&](kernels::CudaStream stream) { return maps.Convolve(stream); },
        timer, setting, write);
    if (!measured.ok()) return measured;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasurePasses(const Setting& setting, bool tiny,
                           const WriteLine& write) {
  const auto timer = kernels::GpuTimer::Create();
  if (!timer.ok()) return timer.status();
  const absl::Status stages = MeasureStages(tiny, **timer, setting, write);
  return stages.ok() ? MeasureDepthwise(tiny, **timer, setting, write) : stages;
}

}  // namespace sfmamba
