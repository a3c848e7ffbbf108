#include <algorithm>

#include "kernels/python/channel_scan_cuda.h"
#include "kernels/python/device_real.h"
#include "simt/simt.h"

// A thread computes one state of one channel, token by token. The threads of a
// channel are neighbours in a warp and sum over the states by shuffles. This
// kernel is simple but not as fast as possible. For comparison, mamba-ssm's
// kernels scan tokens in parallel.
namespace sfmamba::kernels {
namespace {

constexpr int kThreads = 128;

// The number of blocks per multiprocessor. It is so small that the compiler
// spills no registers.
constexpr int kBlocks = 4;
constexpr unsigned kAll = 0xffffffff;

// The number of tokens in a tile. GradientKernel keeps the states of a tile's
// tokens and the tile's gradients of B in shared memory. If the values are
// doubles, the states and these gradients together take 32 KB.
constexpr int kTile = 16;

// How the channels of a group are divided among blocks.
struct Division {
  explicit Division(int channels, int states) : width(1) {
    while (width < states) width *= 2;
    ranges = (channels + kThreads / width - 1) / (kThreads / width);
  }
  int width;   // Threads per channel, a power of 2, at most a warp.
  int ranges;  // Blocks per group.
};

template <typename Real>
__device__ __forceinline__ Real Softplus(Real x) {
  return std::log1p(std::exp(-std::abs(x))) + (x > 0 ? x : 0);
}

// The values of one token that the recurrence reads. B, C and decay are 0 in
// threads without a state.
template <typename Real>
struct Token {
  Real u, x, step, B, C, decay;
};

// The part of a scan that one thread computes, which is one state of one
// channel.
template <typename T>
struct Chain {
  using Real = Arithmetic<T>;

  __device__ Chain(const BatchScanArgs<T>& args, const Division& division)
      : args(args), width(division.width) {
    const int block = static_cast<int>(blockIdx.x);
    const int thread = static_cast<int>(threadIdx.x);
    const int range = block % division.ranges;
    group = block / division.ranges % args.groups;
    image = block / division.ranges / args.groups;
    row = range * (kThreads / width) + thread / width;
    n = thread % width;
    has_channel = row < args.channels;
    has_state = has_channel && n < args.states;
    const int64_t channel = int64_t{group} * args.channels + row;
    in_batch = (int64_t{image} * args.groups * args.channels) + channel;
    A = has_state ? args.A[channel * args.states + n] : 0;
    D = has_channel && args.D != nullptr ? args.D[channel] : 0;
    bias = has_channel && args.bias != nullptr ? args.bias[channel] : 0;
  }

  // Returns the channel's value at token i, or 0 if the thread has no channel.
  __device__ __forceinline__ Real At(const StridedBatch<const T>& x,
                                     int64_t i) const {
    if (!has_channel) return 0;
    return ToReal(RowOf(x, image, group, row)[i * x.token]);
  }

  // Returns the state's value at token i, or 0 if the thread has no state.
  __device__ __forceinline__ Real Shared(const StridedBatch<const T>& x,
                                         int64_t i) const {
    return has_state ? ToReal(RowOf(x, image, group, n)[i * x.token]) : 0;
  }

  // Sets the channel's value at token i.
  __device__ __forceinline__ void Set(const StridedBatch<T>& x, int64_t i,
                                      Real value) const {
    RowOf(x, image, group, row)[i * x.token] = FromReal<T>(value);
  }

  __device__ __forceinline__ Token<Real> Read(int64_t i) const {
    Token<Real> token;
    token.u = At(args.u, i);
    token.x = At(args.delta, i) + bias;
    token.step = args.softplus ? Softplus(token.x) : token.x;
    token.B = Shared(args.B, i);
    token.C = Shared(args.C, i);
    token.decay = has_state ? std::exp(token.step * A) : 0;
    return token;
  }

  // Returns the state after a token. `h` is the state before the token.
  __device__ __forceinline__ Real Next(const Token<Real>& token, Real h) const {
    return has_state ? token.decay * h + token.step * token.B * token.u : 0;
  }

  // Returns the sum of `value` over the channel's states. All threads of the
  // channel get this sum.
  __device__ __forceinline__ Real Sum(Real value) const {
    for (int flip = width / 2; flip > 0; flip /= 2) {
      value += __shfl_xor_sync(kAll, value, flip);
    }
    return value;
  }

  // Returns where the period that begins at token `from` ends.
  __device__ __forceinline__ int64_t PeriodEnd(int64_t from) const {
    const int64_t rest = args.tokens - from;
    return from + (rest < args.period ? rest : args.period);
  }

  // Returns true in the one thread of a channel that writes the channel's
  // values.
  __device__ __forceinline__ bool Writes() const {
    return has_channel && n == 0;
  }

  // Returns the state's index in [images, groups, channels, states].
  __device__ __forceinline__ int64_t StateIndex() const {
    return in_batch * args.states + n;
  }

  const BatchScanArgs<T>& args;
  int width, image, group, row, n;
  bool has_channel, has_state;
  int64_t in_batch;  // The channel's index in [images, groups, channels].
  Real A, D, bias;
};

template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    ScanKernel(const BatchScanArgs<T> args, const BatchScanForward<T> results,
               const Division division) {
  using Real = Arithmetic<T>;
  const Chain<T> chain(args, division);
  Real h = 0;
  for (int64_t from = 0; from < args.tokens; from = chain.PeriodEnd(from)) {
    h = 0;
    for (int64_t i = from; i < chain.PeriodEnd(from); ++i) {
      const Token<Real> token = chain.Read(i);
      h = chain.Next(token, h);
      Real y = chain.Sum(token.C * h) + chain.D * token.u;
      if (args.z.data != nullptr) y *= Silu<Real>(chain.At(args.z, i)).value;
      if (chain.Writes()) chain.Set(results.out, i, y);
    }
  }
  if (chain.has_state) results.last_state[chain.StateIndex()] = h;
}

// A value for each of kTile tokens and for each thread.
template <typename Real>
using Tile = simt::Shared<Real, kTile * kThreads>;

// Computes the gradients of a chain from the last token back to the first. The
// formulas are in channel_scan_gradient_simd.h, with the same letters.
template <typename T>
struct BackwardChain {
  using Real = Arithmetic<T>;

  __device__ BackwardChain(const Chain<T>& chain,
                           const BatchScanBackward<T>& to)
      : chain(chain), to(to) {}

  // Returns where the state before a tile of the period is saved.
  __device__ __forceinline__ Real& Saved(int64_t tile) const {
    return to.saved[(tile * gridDim.x + blockIdx.x) * kThreads + threadIdx.x];
  }

  // Saves the states at the start of each tile of the period [from, end).
  __device__ void Save(int64_t from, int64_t end) const {
    Real h = 0;
    for (int64_t i = from; i < end; ++i) {
      if ((i - from) % kTile == 0) Saved((i - from) / kTile) = h;
      h = chain.Next(chain.Read(i), h);
    }
  }

  // Adds token i to the gradients. `before` and `h` are the states before and
  // after the token. Returns this thread's part of the gradient of B.
  __device__ Real GoBack(int64_t i, Real before, Real h) {
    const Token<Real> token = chain.Read(i);
    Real dy = chain.At(to.out, i);
    if (chain.args.z.data != nullptr) {
      const Silu<Real> silu(chain.At(chain.args.z, i));
      const Real y = chain.Sum(token.C * h) + chain.D * token.u;
      if (chain.Writes()) chain.Set(to.z, i, dy * silu.slope * y);
      dy *= silu.value;
    }
    dC = dy * h;
    const Real G = chain.has_state ? token.C * dy + carry : 0;
    carry = token.decay * G;
    const Real E = carry * before;
    const Real by_B = chain.Sum(G * token.B);
    Real dx = chain.Sum(E * chain.A) + token.u * by_B;
    if (chain.args.softplus) dx /= 1 + std::exp(-token.x);
    dA += token.step * E;
    dD += dy * token.u;
    dbias += dx;
    if (chain.Writes()) {
      chain.Set(to.u, i, chain.D * dy + token.step * by_B);
      chain.Set(to.delta, i, dx);
    }
    return G * token.step * token.u;
  }

  // Sums a tile's gradient of B or C over the channels of the block and writes
  // the results to `sums`.
  __device__ void WriteSums(Tile<Real>& tile, int64_t begin, int tokens,
                            Real* sums) const {
    const int states = chain.args.states;
    for (int k = threadIdx.x; k < tokens * states; k += kThreads) {
      const int i = k % tokens, n = k / tokens;
      Real sum = 0;
      for (int c = n; c < kThreads; c += chain.width) {
        sum += tile[i * kThreads + c];
      }
      sums[(int64_t{blockIdx.x} * states + n) * chain.args.tokens + begin + i] =
          sum;
    }
  }

  __device__ void WriteTotals() const {
    if (chain.has_state) to.A[chain.StateIndex()] = dA;
    if (!chain.Writes()) return;
    to.D[chain.in_batch] = dD;
    to.bias[chain.in_batch] = dbias;
  }

  const Chain<T>& chain;
  const BatchScanBackward<T>& to;
  Real carry = 0;  // decay * G of the next token.
  Real dC = 0;     // This thread's part of dC at the token.
  Real dA = 0, dD = 0, dbias = 0;
};

template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    GradientKernel(const BatchScanArgs<T> args, const BatchScanBackward<T> to,
                   const Division division) {
  using Real = Arithmetic<T>;
  __shared__ Tile<Real> states;  // Replaced by dC in the backward loop.
  __shared__ Tile<Real> dB;
  const Chain<T> chain(args, division);
  BackwardChain<T> back(chain, to);
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t from = 0; from < args.tokens; from = chain.PeriodEnd(from)) {
    const int64_t end = chain.PeriodEnd(from);
    back.Save(from, end);
    const bool last = end == args.tokens && to.last_state != nullptr;
    back.carry =
        last && chain.has_state ? to.last_state[chain.StateIndex()] : 0;
    for (int64_t tile = (end - from - 1) / kTile; tile >= 0; --tile) {
      const int64_t begin = from + tile * kTile;
      const int tokens =
          end - begin < kTile ? static_cast<int>(end - begin) : kTile;
      const Real start = back.Saved(tile);
      Real h = start;
      for (int i = 0; i < tokens; ++i) {
        h = chain.Next(chain.Read(begin + i), h);
        states[i * kThreads + thread] = h;
      }
      for (int i = tokens - 1; i >= 0; --i) {
        const int at = i * kThreads + thread;
        const Real before = i > 0 ? Real{states[at - kThreads]} : start;
        dB[at] = back.GoBack(begin + i, before, states[at]);
        states[at] = back.dC;
      }
      __syncthreads();
      back.WriteSums(dB, begin, tokens, to.B);
      back.WriteSums(states, begin, tokens, to.C);
      __syncthreads();
    }
  }
  back.WriteTotals();
}

template <typename T>
dim3 Blocks(const BatchScanArgs<T>& args, const Division& division) {
  return dim3(args.images * args.groups * division.ranges);
}

}  // namespace

template <typename T>
std::string BatchScanCuda(const BatchScanArgs<T>& args,
                          const BatchScanForward<T>& results,
                          CudaStream stream) {
  const Division division(args.channels, args.states);
  return std::string(simt::Launch("channel_scan", ScanKernel<T>,
                                  Blocks(args, division), dim3(kThreads),
                                  stream, args, results, division)
                         .message());
}

template <typename T>
std::string BatchScanGradientCuda(const BatchScanArgs<T>& args,
                                  const BatchScanBackward<T>& gradients,
                                  CudaStream stream) {
  const Division division(args.channels, args.states);
  return std::string(simt::Launch("channel_scan gradient", GradientKernel<T>,
                                  Blocks(args, division), dim3(kThreads),
                                  stream, args, gradients, division)
                         .message());
}

template <typename T>
int64_t BatchScanRanges(const BatchScanArgs<T>& args) {
  return Division(args.channels, args.states).ranges;
}

template <typename T>
int64_t BatchScanSaved(const BatchScanArgs<T>& args) {
  const int64_t longest = std::min(args.period, args.tokens);
  return int64_t{args.images} * args.groups * BatchScanRanges(args) * kThreads *
         ((longest + kTile - 1) / kTile);
}

template std::string BatchScanCuda(const BatchScanArgs<float>&,
                                   const BatchScanForward<float>&, CudaStream);
template std::string BatchScanCuda(const BatchScanArgs<BFloat16>&,
                                   const BatchScanForward<BFloat16>&,
                                   CudaStream);
template std::string BatchScanCuda(const BatchScanArgs<double>&,
                                   const BatchScanForward<double>&, CudaStream);
template std::string BatchScanGradientCuda(const BatchScanArgs<float>&,
                                           const BatchScanBackward<float>&,
                                           CudaStream);
template std::string BatchScanGradientCuda(const BatchScanArgs<BFloat16>&,
                                           const BatchScanBackward<BFloat16>&,
                                           CudaStream);
template std::string BatchScanGradientCuda(const BatchScanArgs<double>&,
                                           const BatchScanBackward<double>&,
                                           CudaStream);
template int64_t BatchScanRanges(const BatchScanArgs<float>&);
template int64_t BatchScanRanges(const BatchScanArgs<BFloat16>&);
template int64_t BatchScanRanges(const BatchScanArgs<double>&);
template int64_t BatchScanSaved(const BatchScanArgs<float>&);
template int64_t BatchScanSaved(const BatchScanArgs<BFloat16>&);
template int64_t BatchScanSaved(const BatchScanArgs<double>&);

}  // namespace sfmamba::kernels
