#include "kernels/python/causal_conv1d_cuda.h"
#include "kernels/python/device_real.h"
#include "simt/simt.h"

// A block convolves one channel of one image, and its threads divide the
// tokens. The threads do not exchange results for single tokens. For example,
// the gradient of a token depends on the output gradients of all tokens that
// read it. A thread computes the intermediate results of these tokens itself,
// even if other threads compute them, too.
namespace sfmamba::kernels {
namespace {

constexpr int kThreads = 128;

// The minimum number of blocks that must fit on a multiprocessor. It is small
// enough that the compiler does not have to spill registers.
constexpr int kBlocks = 4;
constexpr int kWarp = 32;
constexpr unsigned kAll = 0xffffffff;

// The input and the parameters of one channel of one image, which a block
// convolves.
template <typename T>
struct Channel {
  using Real = Arithmetic<T>;

  __device__ explicit Channel(const BatchConv1dArgs<T>& args)
      : args(args),
        image(static_cast<int>(blockIdx.x) / args.channels),
        row(static_cast<int>(blockIdx.x) % args.channels),
        run(args.run == nullptr ? nullptr : args.run + image * args.tokens) {}

  // Returns the weight that multiplies the token j tokens earlier.
  __device__ __forceinline__ Real Weight(int j) const {
    return args.weight[row * args.taps + args.taps - 1 - j];
  }

  // Returns the number of taps of token i, or 0 if the output of the token is
  // 0.
  __device__ __forceinline__ int Taps(int64_t i) const {
    if (run != nullptr && run[i] < 0) return 0;
    const int64_t period_start = i - i % args.period;
    const bool goes_in_front =
        period_start == 0 && args.initial.data != nullptr;
    int taps = 1;
    for (; taps < args.taps; ++taps) {
      const int64_t from = i - taps;
      if (from < period_start && !goes_in_front) break;
      if (run != nullptr && from >= 0 && run[from] != run[from + 1]) break;
    }
    return taps;
  }

  // Returns the value of token i. If i is negative, this is an initial token in
  // front of token 0.
  __device__ __forceinline__ Real X(int64_t i) const {
    if (i >= 0) return ToReal(RowOf(args.x, image, 0, row)[i * args.x.token]);
    const T* initial = RowOf(args.initial, image, 0, row);
    return ToReal(initial[(args.taps - 1 + i) * args.initial.token]);
  }

  // Returns v, as defined in causal_conv1d.h, of token i with `taps` taps.
  __device__ __forceinline__ Real V(int64_t i, int taps) const {
    Real v = args.bias == nullptr ? 0 : args.bias[row];
    for (int j = 0; j < taps; ++j) v += Weight(j) * X(i - j);
    return v;
  }

  // Returns the gradient of V(i, taps).
  __device__ __forceinline__ Real DV(const StridedBatch<const T>& dout,
                                     int64_t i, int taps) const {
    const Real gradient = ToReal(RowOf(dout, image, 0, row)[i * dout.token]);
    return args.silu ? gradient * Silu<Real>(V(i, taps)).slope : gradient;
  }

  const BatchConv1dArgs<T>& args;
  const int image, row;
  const int32_t* const run;
};

template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    ConvKernel(const BatchConv1dArgs<T> args, const StridedBatch<T> out) {
  using Real = Arithmetic<T>;
  const Channel<T> channel(args);
  T* to = RowOf(out, channel.image, 0, channel.row);
  for (int64_t i = threadIdx.x; i < args.tokens; i += kThreads) {
    const int taps = channel.Taps(i);
    Real v = taps > 0 ? channel.V(i, taps) : 0;
    if (args.silu) v = Silu<Real>(v).value;
    to[i * out.token] = FromReal<T>(v);
  }
}

// Returns the sum of `value` over all threads of the block.
template <typename Real>
__device__ __forceinline__ Real
BlockSum(Real value, simt::Shared<Real, kThreads / kWarp>& warps) {
  for (int flip = kWarp / 2; flip > 0; flip /= 2) {
    value += __shfl_xor_sync(kAll, value, flip);
  }
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  Real sum = 0;
  for (int w = 0; w < kThreads / kWarp; ++w) sum += warps[w];
  __syncthreads();
  return sum;
}

// Each thread computes the gradient of a token i from the tokens that read it.
// These are the tokens i + j that have more than j taps.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    GradientKernel(const BatchConv1dArgs<T> args,
                   const BatchConv1dBackward<T> to) {
  using Real = Arithmetic<T>;
  __shared__ simt::Shared<Real, kThreads / kWarp> warps;
  const Channel<T> channel(args);
  const int before = args.initial.data == nullptr ? 0 : args.taps - 1;
  Real dweight[kMaxDeviceTaps] = {}, dbias = 0;
  for (int64_t k = threadIdx.x; k < before + args.tokens; k += kThreads) {
    const int64_t i = k - before;
    const Real x = channel.X(i);
    Real dx = 0;
#pragma unroll
    for (int j = 0; j < kMaxDeviceTaps; ++j) {
      const int64_t reader = i + j;
      if (j >= args.taps || reader < 0 || reader >= args.tokens) continue;
      const int taps = channel.Taps(reader);
      if (j >= taps) continue;
      const Real dv = channel.DV(to.out, reader, taps);
      dx += dv * channel.Weight(j);
      dweight[j] += dv * x;
      if (j == 0) dbias += dv;
    }
    if (i < 0) {
      RowOf(to.initial, channel.image, 0, channel.row)[k * to.initial.token] =
          FromReal<T>(dx);
    } else {
      RowOf(to.x, channel.image, 0, channel.row)[i * to.x.token] =
          FromReal<T>(dx);
    }
  }
  const int64_t index = blockIdx.x;
#pragma unroll
  for (int j = 0; j < kMaxDeviceTaps; ++j) {
    if (j >= args.taps) continue;
    const Real sum = BlockSum(dweight[j], warps);
    if (threadIdx.x == 0) to.weight[(index + 1) * args.taps - 1 - j] = sum;
  }
  dbias = BlockSum(dbias, warps);
  if (threadIdx.x == 0) to.bias[index] = dbias;
}

}  // namespace

template <typename T>
std::string BatchConv1dCuda(const BatchConv1dArgs<T>& args, StridedBatch<T> out,
                            CudaStream stream) {
  return std::string(simt::Launch("causal_conv1d", ConvKernel<T>,
                                  dim3(args.images * args.channels),
                                  dim3(kThreads), stream, args, out)
                         .message());
}

template <typename T>
std::string BatchConv1dGradientCuda(const BatchConv1dArgs<T>& args,
                                    const BatchConv1dBackward<T>& gradients,
                                    CudaStream stream) {
  return std::string(simt::Launch("causal_conv1d gradient", GradientKernel<T>,
                                  dim3(args.images * args.channels),
                                  dim3(kThreads), stream, args, gradients)
                         .message());
}

template std::string BatchConv1dCuda(const BatchConv1dArgs<float>&,
                                     StridedBatch<float>, CudaStream);
template std::string BatchConv1dCuda(const BatchConv1dArgs<BFloat16>&,
                                     StridedBatch<BFloat16>, CudaStream);
template std::string BatchConv1dCuda(const BatchConv1dArgs<double>&,
                                     StridedBatch<double>, CudaStream);
template std::string BatchConv1dGradientCuda(const BatchConv1dArgs<float>&,
                                             const BatchConv1dBackward<float>&,
                                             CudaStream);
template std::string BatchConv1dGradientCuda(
    const BatchConv1dArgs<BFloat16>&, const BatchConv1dBackward<BFloat16>&,
    CudaStream);
template std::string BatchConv1dGradientCuda(const BatchConv1dArgs<double>&,
                                             const BatchConv1dBackward<double>&,
                                             CudaStream);

}  // namespace sfmamba::kernels
