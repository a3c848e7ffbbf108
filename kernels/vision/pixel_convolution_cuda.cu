#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_activation.h"
#include "kernels/cuda/device_rows.h"
#include "kernels/vision/device_pixels.h"
#include "kernels/vision/pixel_convolution_cuda.h"
#include "simt/simt.h"

// Bound by fused multiply-adds. A thread does 1728 of them for 8 pixels by 8
// channels: 9 times through a loop that is on sm_90
//   192 FFMA, 12 LDS (10 of them of 16 bytes), 7 others,
// that is 64 FFMA and 4 LDS a tap. Besides, a square costs each thread about
// 400 instructions and each 32 channels 400 more, so that of all instructions
// FFMA are 64 % with 32 channels and 69 % with 64.
namespace sfmamba::kernels {
namespace {

// A block makes a square of output pixels, 32 channels at a time.
constexpr int kSide = 16;
constexpr int kChannels = 8;  // Of a thread.
constexpr int kLanes = 4;     // Threads that share their pixels.
constexpr int kGroup = kLanes * kChannels;
constexpr int kTaps = 27;

// A thread's pixels: two runs of 4 in a row, 8 apart.
constexpr int kRuns = 2, kRun = 4;
constexpr int kApart = kSide / kRuns;
constexpr int kThreads = kSide * kSide / (kRuns * kRun) * kLanes;
using Sums = float[kRuns][kRun][kChannels];

// The normalised pixels under a square, from the row and the column before it:
// of each row each colour's even columns of the image, then its odd ones, of
// which the first is the column before. The 8 places that a warp reads 16 bytes
// from at a time, 2 in each of 4 rows, lie on different banks: 2 rows are 216
// values, 24 beyond a multiple of 32.
constexpr int kRows = 2 * kSide + 1;
constexpr int kEven = kSide, kOdd = kSide + 4;
constexpr int kLine = kEven + kOdd;
using Tile = simt::Shared<float, kRows * 3 * kLine>;

// [ky][colour][kx][kGroup]: the order in which the taps are summed.
using Weights = simt::Shared<float, kTaps * kGroup>;

template <typename T>
struct Parameters {
  CudaImage images[kImages];
  int height, width;  // Of y.
  int channels;
  const float *weight, *bias;
  T* y;
  float mean[3], std[3];
  Clamp activation;
};

// The tile of the square at (row, column) of y.
__device__ __forceinline__ void FillTile(const CudaImage& image,
                                         PixelTable& table, int row, int column,
                                         Tile* tile) {
  // Four pixels at a time; of a row's first four only the last one counts.
  constexpr int kSteps = 2 * kSide / kPixels + 1;
  for (int n = threadIdx.x; n < kRows * kSteps; n += kThreads) {
    const int i = n / kSteps, step = n % kSteps - 1;
    const int y = 2 * row - 1 + i, x = 2 * column + kPixels * step;
    float values[3 * kPixels];
    ReadPixels(image, table, y, x, values);
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      const int even = (3 * i + c) * kLine + 2 * step, odd = even + kEven;
      if (step >= 0) {
        tile->Store<2>(even, {{values[c], values[6 + c]}});
        (*tile)[odd + 1] = values[3 + c];
      }
      (*tile)[odd + 2] = values[9 + c];
    }
  }
}

// Of the group of channels from `first` on; 0 for those that do not exist.
template <typename T>
__device__ __forceinline__ void FillWeights(const Parameters<T>& parameters,
                                            int first, Weights* weights) {
  for (int n = threadIdx.x; n < kTaps * kGroup / 4; n += kThreads) {
    const int tap = n / (kGroup / 4), c = n % (kGroup / 4) * 4;
    const int ky = tap / 9, colour = tap / 3 % 3, kx = tap % 3;
    simt::Vector<float, 4> four = {};
    if (first + c < parameters.channels) {
      const int row = (ky * 3 + kx) * 3 + colour;
      four = simt::Load<4>(parameters.weight +
                           int64_t{row} * parameters.channels + first + c);
    }
    weights->Store(tap * kGroup + c, four);
  }
}

// Which of a group's channels a thread's n-th one is, if pixels of T are
// written: V of them side by side, then those of the other lanes.
template <typename T>
__device__ __forceinline__ int Channel(int lane, int n) {
  constexpr int V = kWidestVector<T>;
  return (n / V * kLanes + lane) * V + n % V;
}

template <typename T>
__device__ __forceinline__ void BeginWithBias(const Parameters<T>& parameters,
                                              int first, int lane, Sums& sums) {
#pragma unroll
  for (int n = 0; n < kChannels; n += 4) {
    const int channel = first + Channel<T>(lane, n);
    float bias[4] = {};
    if (channel < parameters.channels) {
      LoadFloats(parameters.bias + channel, bias);
    }
#pragma unroll
    for (int pixel = 0; pixel < kRuns * kRun; ++pixel) {
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        sums[pixel / kRun][pixel % kRun][n + m] = bias[m];
      }
    }
  }
}

// Adds to a run's sums what one of its taps multiplies: x[p] under pixel p.
__device__ __forceinline__ void AddTap(const float* x,
                                       const float (&weight)[kChannels],
                                       float (&sums)[kRun][kChannels]) {
#pragma unroll
  for (int p = 0; p < kRun; ++p) {
#pragma unroll
    for (int n = 0; n < kChannels; ++n) {
      sums[p][n] = fmaf(x[p], weight[n], sums[p][n]);
    }
  }
}

// `from`: where the tile holds the row and the columns above the first run.
template <typename T>
__device__ __forceinline__ void AddTaps(Tile& tile, Weights& weights, int from,
                                        int lane, Sums& sums) {
#pragma unroll 1
  for (int line = 0; line < 9; ++line) {  // 3 ky + colour
    // Under pixel p of a run: columns odd[p], even[p], odd[p + 1].
    float even[kRuns][kRun], odd[kRuns][kRun + 1];
#pragma unroll
    for (int k = 0; k < kRuns; ++k) {
      const int at = from + line * kLine + k * kApart;
      const simt::Vector<float, kRun> e = tile.Load<kRun>(at);
      const simt::Vector<float, kRun> o = tile.Load<kRun>(at + kEven);
#pragma unroll
      for (int p = 0; p < kRun; ++p) {
        even[k][p] = e[p];
        odd[k][p] = o[p];
      }
      odd[k][kRun] = tile[at + kEven + kRun];
    }
#pragma unroll
    for (int kx = 0; kx < 3; ++kx) {
      float weight[kChannels];
#pragma unroll
      for (int n = 0; n < kChannels; n += 4) {
        const simt::Vector<float, 4> four =
            weights.Load<4>((3 * line + kx) * kGroup + Channel<T>(lane, n));
#pragma unroll
        for (int m = 0; m < 4; ++m) weight[n + m] = four[m];
      }
#pragma unroll
      for (int k = 0; k < kRuns; ++k) {
        AddTap(kx == 1 ? even[k] : odd[k] + kx / 2, weight, sums[k]);
      }
    }
  }
}

// Pixel (y, x) is the first of the thread's.
template <typename T>
__device__ __forceinline__ void StoreSums(const Parameters<T>& parameters,
                                          const Sums& sums, int y, int x,
                                          int first, int lane) {
  constexpr int V = kWidestVector<T>;
  if (y >= parameters.height) return;
#pragma unroll
  for (int n = 0; n < kChannels; n += V) {
    const int channel = first + Channel<T>(lane, n);
    if (channel >= parameters.channels) continue;
    int64_t at = int64_t{blockIdx.z} * parameters.height + y;
    at = (at * parameters.width + x) * parameters.channels + channel;
#pragma unroll
    for (int k = 0; k < kRuns; ++k) {
#pragma unroll
      for (int p = 0; p < kRun; ++p, at += parameters.channels) {
        if (x + k * kApart + p >= parameters.width) continue;
        float values[V];
#pragma unroll
        for (int m = 0; m < V; ++m) {
          values[m] = parameters.activation(sums[k][p][n + m]);
        }
        at = simt::Opaque(at);
        StoreFloats(parameters.y + at, values);
      }
      at += (kApart - kRun) * parameters.channels;
    }
  }
}

// Blocks: x, y over squares, z the images.
template <typename T>
__global__ void __launch_bounds__(kThreads, 4)
    ConvolveKernel(Parameters<T> parameters) {
  __shared__ PixelTable table;
  __shared__ Tile tile;
  __shared__ Weights weights;
  const int lane = threadIdx.x % kLanes, pixels = threadIdx.x / kLanes;
  const int i = pixels / kRuns, j = pixels % kRuns * kRun;  // In the square.
  const int row = blockIdx.y * kSide, column = blockIdx.x * kSide;
  FillPixelTable(parameters.mean, parameters.std, threadIdx.x, kThreads,
                 &table);
  __syncthreads();
  const CudaImage image = parameters.images[blockIdx.z];
  FillTile(image, table, row, column, &tile);
  for (int first = 0; first < parameters.channels; first += kGroup) {
    FillWeights(parameters, first, &weights);
    __syncthreads();
    Sums sums;
    BeginWithBias(parameters, first, lane, sums);
    AddTaps<T>(tile, weights, 2 * i * 3 * kLine + j, lane, sums);
    StoreSums(parameters, sums, row + i, column + j, first, lane);
    __syncthreads();
  }
}

template <typename T>
absl::Status Check(const PixelConvolutionArgs<T>& args) {
  if (args.channels % kChannels != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("pixel_convolution: expected a multiple of ", kChannels,
                     " channels, got ", args.channels));
  }
  if (args.activation == CudaActivation::kGeluErf ||
      args.activation == CudaActivation::kGeluTanh) {
    return absl::InvalidArgumentError(
        "pixel_convolution: expected no activation, ReLU or ReLU6, got GELU");
  }
  if (!InVectors<4>(args.weight, 0, 4) || !InVectors<4>(args.bias, 0, 4) ||
      !InVectors<kWidestVector<T>>(args.y, 0, kWidestVector<T>)) {
    return absl::InvalidArgumentError(
        "pixel_convolution: expected weight, bias and y at multiples of 16 "
        "bytes");
  }
  return absl::OkStatus();
}

// All but the images and y.
template <typename T>
Parameters<T> MakeParameters(const PixelConvolutionArgs<T>& args) {
  Parameters<T> parameters{};
  parameters.height = (args.height + 1) / 2;
  parameters.width = (args.width + 1) / 2;
  parameters.channels = args.channels;
  parameters.weight = args.weight;
  parameters.bias = args.bias;
  std::copy_n(args.mean.begin(), 3, parameters.mean);
  std::copy_n(args.std.begin(), 3, parameters.std);
  parameters.activation = ClampOf(args.activation);
  return parameters;
}

}  // namespace

template <typename T>
absl::Status PixelConvolutionCuda(const PixelConvolutionArgs<T>& args,
                                  CudaStream stream) {
  const absl::Status checked = Check(args);
  if (!checked.ok() || args.channels == 0) return checked;
  Parameters<T> parameters = MakeParameters(args);
  const int64_t values =
      int64_t{parameters.height} * parameters.width * args.channels;
  for (int first = 0; first < args.count; first += kImages) {
    const int count = std::min(kImages, args.count - first);
    std::copy_n(args.images + first, count, parameters.images);
    parameters.y = args.y + first * values;
    const absl::Status launched =
        simt::Launch("pixel_convolution", ConvolveKernel<T>,
                     dim3((parameters.width + kSide - 1) / kSide,
                          (parameters.height + kSide - 1) / kSide, count),
                     dim3(kThreads), stream, parameters);
    if (!launched.ok()) return launched;
  }
  return absl::OkStatus();
}

template absl::Status PixelConvolutionCuda(const PixelConvolutionArgs<float>&,
                                           CudaStream);
template absl::Status PixelConvolutionCuda(
    const PixelConvolutionArgs<BFloat16>&, CudaStream);
template absl::Status PixelConvolutionCuda(const PixelConvolutionArgs<Float16>&,
                                           CudaStream);

}  // namespace sfmamba::kernels
