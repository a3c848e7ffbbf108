// Computes the convolution of causal_conv1d.h by vectors of type V, one channel
// per lane. causal_conv1d_isa.cc includes this header and is compiled once for
// each instruction set, with a different V.
#ifndef SFMAMBA_KERNELS_PYTHON_CAUSAL_CONV1D_SIMD_H_
#define SFMAMBA_KERNELS_PYTHON_CAUSAL_CONV1D_SIMD_H_

#include "kernels/python/causal_conv1d.h"
#include "kernels/python/tiles.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// Finds the number of taps of each token. Runs are defined in causal_conv1d.h.
// Taps must not reach tokens before the token's run, so tokens near the start
// of a run have fewer taps. This class tracks where the current run begins.
template <typename T>
class RunStart {
 public:
  explicit RunStart(const CausalConv1dArgs<T>& args)
      : args_(args),
        start_(args.initial.data != nullptr ? -(args.taps - 1) : 0) {}

  // Returns the number of taps of token i, or 0 if the output of the token is
  // 0. Must be called once for each token, in order.
  int Taps(int64_t i) {
    const bool changed =
        args_.run != nullptr && i > 0 && args_.run[i] != args_.run[i - 1];
    if (changed || (i > 0 && i % args_.period == 0)) start_ = i;
    if (args_.run != nullptr && args_.run[i] < 0) return 0;
    const int64_t before = i - start_;
    return before < args_.taps - 1 ? static_cast<int>(before) + 1 : args_.taps;
  }

 private:
  const CausalConv1dArgs<T>& args_;
  int64_t start_;
};

// kWidth channels of a tile. The array x holds the taps-1 tokens before the
// tile, followed by the tile's tokens.
template <typename V, typename T>
struct ConvolvedBlock {
  using Real = Arithmetic<T>;

  ConvolvedBlock(const CausalConv1dArgs<T>& args, int first) : channel(first) {
    const int rest = args.channels - channel;
    lanes = rest < V::kWidth ? rest : V::kWidth;
    for (int j = 0; j < args.taps; ++j) {
      Real values[V::kWidth] = {};
      for (int c = 0; c < lanes; ++c) {
        const int64_t row = channel + c;
        values[c] = args.weight[row * args.taps + args.taps - 1 - j];
      }
      weight[j] = V::Load(values);
    }
    bias = V::Set(0);
    if (args.bias != nullptr) bias = LoadLanes<V>(args.bias + channel, lanes);
    for (int j = 0; j < args.taps - 1; ++j) V::Set(0).Store(x[j]);
    if (args.initial.data != nullptr) {
      LoadTile<V>(args.initial, channel, lanes, 0, args.taps - 1, x);
    }
  }

  // Reads the tile's tokens.
  void Read(const CausalConv1dArgs<T>& args, int64_t begin, int tokens) {
    LoadTile<V>(args.x, channel, lanes, begin, tokens, x + args.taps - 1);
  }

  // Moves the last taps-1 tokens to the start of x, because they come before
  // the next tile.
  void Shift(const CausalConv1dArgs<T>& args, int tokens) {
    for (int j = 0; j < args.taps - 1; ++j) {
      V::Load(x[tokens + j]).Store(x[j]);
    }
  }

  // Returns v, as defined in causal_conv1d.h, of the tile's token i.
  V At(int i, int all_taps, int taps) const {
    V v = bias;
    for (int j = 0; j < taps; ++j) {
      v = Fma(weight[j], V::Load(x[i + all_taps - 1 - j]), v);
    }
    return v;
  }

  int channel;  // The first channel.
  int lanes;    // The number of channels, at most kWidth.
  V bias;
  V weight[kMaxTaps];  // weight[j] multiplies x[d, i-j].
  alignas(64) Real x[kMaxTaps - 1 + kTile][V::kWidth];
};

template <typename V, typename T>
void Convolve(const CausalConv1dArgs<T>& args, Strided<T> out) {
  using Real = Arithmetic<T>;
  constexpr Real kLog2EReal = static_cast<Real>(1.4426950408889634);
  for (int channel = 0; channel < args.channels; channel += V::kWidth) {
    ConvolvedBlock<V, T> block(args, channel);
    RunStart<T> run(args);
    alignas(64) Real tile[kTile][V::kWidth];
    for (int64_t begin = 0; begin < args.tokens; begin += kTile) {
      const int64_t rest = args.tokens - begin;
      const int tokens = rest < kTile ? static_cast<int>(rest) : kTile;
      block.Read(args, begin, tokens);
      for (int i = 0; i < tokens; ++i) {
        const int taps = run.Taps(begin + i);
        V v = taps > 0 ? block.At(i, args.taps, taps) : V::Set(0);
        if (args.silu) v = OverOnePlusExp2(v, v * V::Set(-kLog2EReal));
        v.Store(tile[i]);
      }
      StoreTile<V>(tile, out, channel, block.lanes, begin, tokens);
      block.Shift(args, tokens);
    }
  }
}

template <typename V, typename T>
void ConvolveGradient(const CausalConv1dArgs<T>& args,
                      const CausalConv1dBackward<T>& to) {
  using Real = Arithmetic<T>;
  constexpr Real kLog2EReal = static_cast<Real>(1.4426950408889634);
  const int before = args.taps - 1;
  for (int channel = 0; channel < args.channels; channel += V::kWidth) {
    ConvolvedBlock<V, T> block(args, channel);
    RunStart<T> run(args);
    alignas(64) Real dout[kTile][V::kWidth];
    // Row i is the gradient of the token with index begin + i - before. Taps
    // reach back by up to `before` tokens, so the first `before` rows belong to
    // tokens before this tile.
    alignas(64) Real dx[kMaxTaps - 1 + kTile][V::kWidth] = {};
    V dweight[kMaxTaps], dbias = V::Set(0);
    for (int j = 0; j < args.taps; ++j) dweight[j] = V::Set(0);
    // Writes the gradients of `count` tokens, which begin at token `first`.
    // Tokens with negative indices are the tokens of args.initial, so their
    // gradients are written to to.initial. If args.initial is null, these
    // gradients are dropped.
    const auto store = [&](const Real(*rows)[V::kWidth], int64_t first,
                           int count) {
      const int early = first < 0 ? static_cast<int>(-first) : 0;
      const int in_front = early < count ? early : count;
      if (args.initial.data != nullptr && in_front > 0) {
        StoreTile<V>(rows, to.initial, channel, block.lanes, first + before,
                     in_front);
      }
      StoreTile<V>(rows + in_front, to.x, channel, block.lanes,
                   first + in_front, count - in_front);
    };
    for (int64_t begin = 0; begin < args.tokens; begin += kTile) {
      const int64_t rest = args.tokens - begin;
      const int tokens = rest < kTile ? static_cast<int>(rest) : kTile;
      block.Read(args, begin, tokens);
      LoadTile<V>(to.out, channel, block.lanes, begin, tokens, dout);
      for (int i = 0; i < tokens; ++i) {
        const int taps = run.Taps(begin + i);
        if (taps == 0) continue;
        V dv = V::Load(dout[i]);
        if (args.silu) {
          const V v = block.At(i, args.taps, taps);
          const V sigmoid = OverOnePlusExp2(V::Set(1), v * V::Set(-kLog2EReal));
          dv = dv *
               Fma(v * sigmoid, Fma(sigmoid, V::Set(-1), V::Set(1)), sigmoid);
        }
        dbias = dbias + dv;
        for (int j = 0; j < taps; ++j) {
          const int row = i + before - j;
          dweight[j] = Fma(dv, V::Load(block.x[row]), dweight[j]);
          Fma(dv, block.weight[j], V::Load(dx[row])).Store(dx[row]);
        }
      }
      store(dx, begin - before, tokens);
      for (int j = 0; j < before; ++j) V::Load(dx[tokens + j]).Store(dx[j]);
      for (int i = before; i < before + kTile; ++i) V::Set(0).Store(dx[i]);
      block.Shift(args, tokens);
    }
    store(dx, args.tokens - before, before);
    for (int j = 0; j < args.taps; ++j) {
      Real values[V::kWidth];
      dweight[j].Store(values);
      for (int c = 0; c < block.lanes; ++c) {
        const int64_t row = channel + c;
        to.weight[row * args.taps + args.taps - 1 - j] = values[c];
      }
    }
    Real values[V::kWidth];
    dbias.Store(values);
    for (int c = 0; c < block.lanes; ++c) to.bias[channel + c] = values[c];
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_CAUSAL_CONV1D_SIMD_H_
