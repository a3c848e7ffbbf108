#include "model/ops/cpu/ops.h"

#include <algorithm>
#include <vector>

#include "ATen/ops/empty.h"
#include "kernels/linear/gelu.h"
#include "kernels/pixels/image_normalize.h"
#include "kernels/scan/selective_scan.h"
#include "kernels/sequence/depthwise_conv1d.h"
#include "kernels/sequence/layer_norm.h"
#include "kernels/sequence/token_mean.h"
#include "model/ops/kernel_types.h"
#include "model/ops/parallel.h"
#include "model/ops/scan_arguments.h"

namespace sfmamba::ops {
namespace {

// Each thread gets at least this many values. The fastest kernels need about 10
// us for them, which is longer than waking a thread.
constexpr int64_t kGrainValues = 16384;
// The minimum for the scan, which needs more time per value. While other
// processes use the CPUs, kGrainValues is the minimum for the scan, too. More
// of the short loops then stay on one thread. If a short loop is divided, a
// thread that loses its CPU delays it by more time than the whole loop takes.
constexpr int64_t kGrainScanned = 4096;
// The threads divide the channels of a scan in blocks of this many channels.
constexpr int64_t kBlockChannels = 16;

// Returns the arguments for sequences [begin, end).
template <typename Args>
Args Slice(Args args, int begin, int end) {
  args.sequences = args.sequences.Slice(begin, end);
  return args;
}

// Calls body(begin, end) for ranges of [0, items). An item has `values` values.
// The calls run in parallel if there are enough values.
template <typename Body>
void ForEach(int64_t items, int64_t values, Body body,
             int64_t grain_values = kGrainValues) {
  const int64_t grain = std::max<int64_t>(1, grain_values / values);
  ParallelFor(items, grain, body);
}

// Calls body(sequence, first channel, last channel + 1) for ranges of channels.
// The calls cover all channels of all sequences. They run in parallel if there
// are enough values.
template <typename Body>
void ForEachChannelBlock(const kernels::PackedSequences& sequences,
                         int64_t channels, Body body) {
  const int64_t blocks = (channels + kBlockChannels - 1) / kBlockChannels;
  ForEach(
      sequences.count * blocks, sequences.length * kBlockChannels,
      [&](int64_t begin, int64_t end) {
        while (begin < end) {
          const int64_t sequence = begin / blocks;
          const int64_t last = std::min(end, (sequence + 1) * blocks);
          const int64_t first_block = begin - sequence * blocks;
          const int64_t last_block = last - sequence * blocks;
          body(sequence, first_block * kBlockChannels,
               std::min(channels, last_block * kBlockChannels));
          begin = last;
        }
      },
      LoopsHaveManyParts() ? kGrainValues : kGrainScanned);
}

// Exchanges the first and the last of each sequence's `length` rows.
template <typename T>
void SwapEndsInPlace(T* x, int64_t sequences, int64_t length,
                     int64_t channels) {
  for (int64_t i = 0; i < sequences; ++i, x += length * channels) {
    std::swap_ranges(x, x + channels, x + (length - 1) * channels);
  }
}

// Implements LayerNorm() for x of type T and y of type Y.
template <typename T, typename Y>
void NormalizeTokens(const at::Tensor& x, const at::Tensor& gamma,
                     const at::Tensor& beta, float eps, int64_t length,
                     bool swap, const at::Tensor& y) {
  const int64_t channels = x.size(-1);
  kernels::LayerNormArgs<T, Y> args;
  args.channels = channels;
  args.x = Data<T>(x);
  args.x_stride = channels;
  args.y = Data<Y>(y);
  args.y_stride = channels;
  args.gamma = Floats(gamma);
  args.beta = Floats(beta);
  args.eps = eps;
  // If the kernel swaps, the threads can only divide the sequences. If there
  // are fewer sequences than threads, the swap is therefore done here, before
  // the loop. The threads can then divide the rows. This is not done while
  // loops have many parts. Other processes then use the CPUs, and short loops
  // are better not divided.
  const int64_t rows = x.numel() / channels;
  const bool beforehand = swap && length > 1 && rows / length < LoopThreads() &&
                          !LoopsHaveManyParts();
  if (beforehand) SwapEndsInPlace(args.x, rows / length, length, channels);
  args.swap = swap && !beforehand;
  const int64_t unit = args.swap ? length : 1;
  args.sequences = {static_cast<int>(rows / unit), static_cast<int>(unit)};
  ForEach(args.sequences.count, unit * channels, [&](int64_t b, int64_t e) {
    kernels::LayerNormCpu(Slice(args, b, e));
  });
}

}  // namespace

at::Tensor LayerNorm(at::Tensor& x, const at::Tensor& gamma,
                     const at::Tensor& beta, float eps, int64_t length,
                     bool swap, at::ScalarType type) {
  const at::Tensor y = at::empty(x.sizes(), x.options().dtype(type));
  if (x.scalar_type() == type) {
    Dispatch(x, [&](auto value) {
      using T = decltype(value);
      NormalizeTokens<T, T>(x, gamma, beta, eps, length, swap, y);
    });
  } else {
    TORCH_CHECK(x.scalar_type() == at::kFloat && type == at::kBFloat16,
                "expected fp32 to bf16, got ", x.scalar_type(), " to ", type);
    NormalizeTokens<float, kernels::BFloat16>(x, gamma, beta, eps, length, swap,
                                              y);
  }
  return y;
}

void DepthwiseConvSilu(absl::Span<const SequenceConvolution> convolutions,
                       int left, int64_t length) {
  Dispatch(convolutions[0].x, [&](auto type) {
    using T = decltype(type);
    std::vector<kernels::DepthwiseConv1dArgs<T>> all;
    for (const auto& [x, weight, bias, y] : convolutions) {
      kernels::DepthwiseConv1dArgs<T>& args = all.emplace_back();
      args.channels = x.size(1);
      args.taps = weight.size(0);
      args.left = left;
      args.x = Data<T>(x);
      args.x_stride = x.stride(0);
      args.y = Data<T>(y);
      args.y_stride = y.stride(0);
      args.weight = Floats(weight);
      args.bias = Floats(bias);
      args.silu = true;
      args.sequences = Sequences(x, length);
    }
    const int64_t count = all[0].sequences.count;
    ForEach(count * all.size(), length * all[0].channels,
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                const int sequence = static_cast<int>(i % count);
                kernels::DepthwiseConv1dCpu(
                    Slice(all[i / count], sequence, sequence + 1));
              }
            });
  });
}

void SelectiveScan(const ScanParameters& scan, const at::Tensor& u,
                   const at::Tensor& dt, const at::Tensor& B,
                   const at::Tensor& C, int64_t length, const at::Tensor& y) {
  Dispatch(u, [&](auto type) {
    const auto args =
        ScanArguments<decltype(type)>(scan, u, dt, B, C, length, y);
    ForEachChannelBlock(args.sequences, args.channels,
                        [&](int64_t sequence, int64_t begin, int64_t end) {
                          kernels::SelectiveScanCpu(kernels::SliceChannels(
                              Slice(args, sequence, sequence + 1), begin, end));
                        });
  });
}

void GeluTanh(at::Tensor& x) {
  // The loop handles all values in the order in which they lie in memory, so
  // the order of the axes does not matter.
  TORCH_CHECK(x.is_non_overlapping_and_dense(), "expected a dense tensor");
  Dispatch(x, [&](auto type) {
    using T = decltype(type);
    ForEach(x.numel(), 1, [&](int64_t begin, int64_t end) {
      T* values = Data<T>(x) + begin;
      const int64_t count = end - begin;
      kernels::GeluTanhCpu<T>({1, count, values, count, values, count});
    });
  });
}

void FillEndsWithMean(at::Tensor& x) {
  const int64_t length = x.size(1), channels = x.size(2);
  Dispatch(x, [&](auto type) {
    using T = decltype(type);
    ForEach(x.size(0), length * channels, [&](int64_t begin, int64_t end) {
      T* tokens = Data<T>(x) + begin * length * channels;
      kernels::TokenMeanArgs<T> args;
      args.channels = channels;
      args.x = tokens;
      args.x_stride = channels;
      args.margin = 1;
      args.mean = tokens;
      args.mean_stride = length * channels;
      args.copy = tokens + (length - 1) * channels;
      args.sequences = {static_cast<int>(end - begin),
                        static_cast<int>(length)};
      kernels::TokenMeanCpu(args);
    });
  });
}

void NormalizeImage(const uint8_t* rgb, int64_t plane,
                    const std::array<float, 3>& mean,
                    const std::array<float, 3>& std, at::Tensor image) {
  Dispatch(image, [&](auto type) {
    using T = decltype(type);
    kernels::ImageNormalizeCpu<T>(
        {image.size(1), image.size(2), rgb, Data<T>(image), image.stride(1),
         image.stride(2), image.stride(0), mean, std,
         /*rgb_pixel_stride=*/plane == 0 ? 3 : 1,
         /*rgb_channel_stride=*/plane == 0 ? 1 : plane});
  });
}

}  // namespace sfmamba::ops
