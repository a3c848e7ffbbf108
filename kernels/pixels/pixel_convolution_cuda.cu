#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device_activation.h"
#include "kernels/cuda/device_rows.h"
#include "kernels/pixels/device_pixels.h"
#include "kernels/pixels/pixel_convolution_cuda.h"
#include "simt/simt.h"

// The speed of this kernel is limited by the fused multiply-adds (FFMA). A
// thread computes 8 channels of 8 pixels with 1728 FFMA, in 9 iterations of a
// loop. An iteration computes the products of 3 taps. On sm_90, it takes
//   192 FFMA,
//   12 LDS (loads from shared memory), 10 of them of 16 bytes,
//   7 other instructions.
// Each tap therefore takes 64 FFMA and 4 LDS. In addition, a thread needs about
// 400 instructions once per square of pixels, and 400 for each 32 channels of
// y. FFMA are therefore 64 % of all instructions if y has 32 channels, and 69 %
// if it has 64 channels.
namespace sfmamba::kernels {
namespace {

// A block computes a square of kSide x kSide output pixels, kGroup channels at
// a time.
constexpr int kSide = 16;
constexpr int kChannels = 8;  // Channels per thread.
constexpr int kLanes = 4;     // Threads with the same pixels.
constexpr int kGroup = kLanes * kChannels;
constexpr int kTaps = 27;

// A thread computes kRuns runs of kRun neighbouring pixels. The runs are in the
// same row and begin kApart pixels apart.
constexpr int kRuns = 2, kRun = 4;
constexpr int kApart = kSide / kRuns;
constexpr int kThreads = kSide * kSide / (kRuns * kRun) * kLanes;
using Sums = float[kRuns][kRun][kChannels];

// The normalised input pixels of a square, including one row above it and one
// column to its left. For each colour, a row of the tile holds first the even
// columns of the image and then the odd columns. The first odd column is the
// one to the left of the square.
//
// The threads of a warp read 8 different addresses at a time, 16 bytes at each.
// At these addresses are the inputs of 4 rows of outputs, and of 2 runs in each
// row. From one row of outputs to the next, the address moves by 2 rows of the
// tile. These have 216 values, which is 24 more than a multiple of 32, the
// number of banks. All 8 reads therefore use different banks.
constexpr int kRows = 2 * kSide + 1;
constexpr int kEven = kSide, kOdd = kSide + 4;
constexpr int kLine = kEven + kOdd;
using Tile = simt::Shared<float, kRows * 3 * kLine>;

// [ky][colour][kx][kGroup]. The taps are summed in this order.
using Weights = simt::Shared<float, kTaps * kGroup>;

template <typename T>
struct Parameters {
  CudaImage images[kImages];
  const uint8_t* planar;
  int height, width;  // The size of y.
  int channels;
  const float *weight, *bias;
  T* y;
  float mean[3], std[3];
  Clamp activation;
};

// Fills the tile for the square at (row, column) of y.
__device__ __forceinline__ void FillTile(const CudaImage& image, bool planar,
                                         PixelTable& table, int row, int column,
                                         Tile* tile) {
  // Reads four pixels at a time. Only the last of a row's first four pixels is
  // used.
  constexpr int kSteps = 2 * kSide / kPixels + 1;
  for (int n = threadIdx.x; n < kRows * kSteps; n += kThreads) {
    const int i = n / kSteps, step = n % kSteps - 1;
    const int y = 2 * row - 1 + i, x = 2 * column + kPixels * step;
    float values[3 * kPixels];
    ReadPixels(image, planar, table, y, x, values);
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

// Loads the weights of kGroup channels, beginning with channel `first`. If y
// has fewer channels, the weights of the missing channels are set to 0.
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

// Returns the index of a thread's n-th channel among the kGroup channels. The
// lanes take turns: V contiguous channels belong to lane 0, the next V to lane
// 1, and so on. A lane can therefore write V channels as one vector of T.
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

// Adds the products of one tap to the sums of a run. x[p] is the tap's input
// for pixel p of the run.
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

// Adds the products of all taps to `sums`. `from` is the index in the tile
// where the thread's first run begins, in the topmost row that it reads.
template <typename T>
__device__ __forceinline__ void AddTaps(Tile& tile, Weights& weights, int from,
                                        int lane, Sums& sums) {
#pragma unroll 1
  for (int line = 0; line < 9; ++line) {  // 3 ky + colour
    // Pixel p of a run reads columns odd[p], even[p] and odd[p + 1].
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

// Applies the activation and writes y. The thread's first pixel is (y, x).
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

// blockIdx.x and blockIdx.y select a square of y. blockIdx.z is the image.
template <typename T>
__global__ void __launch_bounds__(kThreads, 4)
    ConvolveKernel(Parameters<T> parameters) {
  __shared__ PixelTable table;
  __shared__ Tile tile;
  __shared__ Weights weights;
  const int lane = threadIdx.x % kLanes, pixels = threadIdx.x / kLanes;
  // The thread's first pixel in the square.
  const int i = pixels / kRuns, j = pixels % kRuns * kRun;
  const int row = blockIdx.y * kSide, column = blockIdx.x * kSide;
  FillPixelTable(parameters.mean, parameters.std, threadIdx.x, kThreads,
                 &table);
  __syncthreads();
  const CudaImage image = parameters.images[blockIdx.z];
  const bool planar =
      parameters.planar != nullptr && parameters.planar[blockIdx.z] != 0;
  FillTile(image, planar, table, row, column, &tile);
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

// Sets all parameters except images, planar and y.
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
    if (args.planar != nullptr) parameters.planar = args.planar + first;
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
