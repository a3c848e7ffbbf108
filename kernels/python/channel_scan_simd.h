// Computes the scan of channel_scan.h by vectors of type V, one channel per
// lane. channel_scan_isa.cc includes this header and is compiled once for each
// instruction set, with a different V.
#ifndef SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_SIMD_H_
#define SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_SIMD_H_

#include "kernels/python/channel_scan.h"
#include "kernels/python/tiles.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// The number of states whose decays are computed together. If the number of
// states is not a multiple of it, the last states are computed one by one.
constexpr int kGroup = 4;

// The constants of kernels/base/logarithms.h, precise enough for doubles.
template <typename Real>
constexpr Real kLog2EOf = static_cast<Real>(1.4426950408889634);
template <typename Real>
constexpr Real kLn2Of = static_cast<Real>(0.6931471805599453);

// Like Exp2ProductsAnyRange(), but the products may be above 126. The result is
// infinity for products of 128 and more.
template <int kCount, typename V>
inline void Exp2ProductsUnbounded(const V* a, V b, V* power) {
  Exp2ProductsAnyRange<kCount>(a, b, power);
  for (int m = 0; m < kCount; ++m) {
    const V x = a[m] * b;
    const V part = Min(V::Set(126.0f), x - V::Set(64.0f));
    const V large = Exp2(part) * V::Set(0x1p64f);
    power[m] = Select(Greater(x, V::Set(126.0f)), large, power[m]);
  }
}

// Divides ChannelScanArgs::scratch. Take() returns the next `count` values of
// this memory.
template <typename Real>
struct Scratch {
  Real* Take(int64_t count) {
    Real* part = next;
    next += count;
    return part;
  }
  Real* next;
};

// Sets `count` values to 0.
template <typename Real>
inline void Clear(Real* p, int64_t count) {
  for (int64_t i = 0; i < count; ++i) p[i] = 0;
}

// Copies B or C of a tile to `shared`, [tokens, states]. All channels use the
// same B and C.
template <typename T, typename Real>
inline void ReadShared(Strided<const T> x, int states, int64_t tile, int tokens,
                       Real* shared) {
  for (int n = 0; n < states; ++n) {
    const T* p = x.data + n * x.row + tile * x.token;
    for (int i = 0; i < tokens; ++i) {
      shared[i * states + n] = static_cast<Real>(p[i * x.token]);
    }
  }
}

// The values of kWidth channels that the recurrence reads in a tile. They are
// computed in base 2. Let v = x * log2(e), where x is defined in
// channel_scan.h. Let s = log2(1 + 2^v), or s = v if args.softplus is false.
// Then step = s * ln(2), and exp(step * A) = 2^(A * s).
template <typename V, typename Real>
struct TileOfBlock {
  alignas(64) Real u[kTile][V::kWidth];
  alignas(64) Real v[kTile][V::kWidth];
  alignas(64) Real s[kTile][V::kWidth];
  alignas(64) Real g[kTile][V::kWidth];  // step * u
  alignas(64) Real y[kTile][V::kWidth];  // D * u, then y
  bool small;  // Every |A*s| is at most 125, and none is NaN.
};

// kWidth channels and their part of the scratch memory.
template <typename V, typename T>
struct Block {
  using Real = Arithmetic<T>;

  Block() = default;
  Block(const ChannelScanArgs<T>& args, int first, Scratch<Real>& scratch)
      : channel(first) {
    const int rest = args.channels - channel;
    lanes = rest < V::kWidth ? rest : V::kWidth;
    A = scratch.Take(int64_t{args.states} * V::kWidth);
    h = scratch.Take(int64_t{args.states} * V::kWidth);
    steepest = V::Set(0);
    for (int n = 0; n < args.states; ++n) {
      for (int c = 0; c < V::kWidth; ++c) {
        A[n * V::kWidth + c] =
            c < lanes ? args.A[int64_t{channel + c} * args.states + n]
                      : Real{0};
      }
      steepest = MaxMagnitude(steepest, Abs(V::Load(A + n * V::kWidth)));
    }
    D = bias = V::Set(0);
    if (args.D != nullptr) D = LoadLanes<V>(args.D + channel, lanes);
    if (args.bias != nullptr) bias = LoadLanes<V>(args.bias + channel, lanes);
    bias = bias * V::Set(kLog2EOf<Real>);
  }

  // Reads u and delta of a tile and sets all members of `to`.
  void Prepare(const ChannelScanArgs<T>& args, int64_t tile, int tokens,
               TileOfBlock<V, Real>* to) const {
    LoadTile<V>(args.u, channel, lanes, tile, tokens, to->u);
    LoadTile<V>(args.delta, channel, lanes, tile, tokens, to->v);
    V largest = V::Set(0);
    for (int i = 0; i < tokens; ++i) {
      const V u = V::Load(to->u[i]);
      const V v = Fma(V::Load(to->v[i]), V::Set(kLog2EOf<Real>), bias);
      const V s = args.softplus ? Softplus2(v) : v;
      largest = MaxMagnitude(largest, Abs(s));
      v.Store(to->v[i]);
      s.Store(to->s[i]);
      (s * (V::Set(kLn2Of<Real>) * u)).Store(to->g[i]);
      (D * u).Store(to->y[i]);
    }
    to->small = V::All(LessEqual(largest * steepest, V::Set(125)));
  }

  int channel;  // The first channel.
  int lanes;    // The number of channels, at most kWidth.
  V steepest;   // The largest |A| of each channel.
  V D;
  V bias;   // The bias times log2(e).
  Real* A;  // [states, kWidth]
  Real* h;  // [states, kWidth], the state
};

// Advances kCount states, which begin with state n, over a tile. Adds their
// contributions to the tile's y.
template <typename V, int kCount, bool kSmall, typename T>
inline void Recur(const Block<V, T>& block, const Arithmetic<T>* B,
                  const Arithmetic<T>* C, int states, int n, int tokens,
                  TileOfBlock<V, Arithmetic<T>>* tile) {
  V A[kCount], h[kCount];
  for (int m = 0; m < kCount; ++m) {
    A[m] = V::Load(block.A + (n + m) * V::kWidth);
    h[m] = V::Load(block.h + (n + m) * V::kWidth);
  }
  for (int i = 0; i < tokens; ++i) {
    const V s = V::Load(tile->s[i]), g = V::Load(tile->g[i]);
    V y = V::Load(tile->y[i]), decay[kCount];
    if constexpr (kSmall) {
      Exp2Products<kCount>(A, s, decay);
    } else {
      Exp2ProductsUnbounded<kCount>(A, s, decay);
    }
    for (int m = 0; m < kCount; ++m) {
      h[m] = Fma(decay[m], h[m], g * V::Set(B[i * states + n + m]));
      y = Fma(V::Set(C[i * states + n + m]), h[m], y);
    }
    y.Store(tile->y[i]);
  }
  for (int m = 0; m < kCount; ++m) h[m].Store(block.h + (n + m) * V::kWidth);
}

// Divides all states into groups. Calls f.Run<count, small>(n) for each group
// of `count` states, which begins with state n.
template <typename F>
inline void ForEachGroup(int states, bool small, F f) {
  int n = 0;
  for (; n + kGroup <= states; n += kGroup) {
    if (small) {
      f.template Run<kGroup, true>(n);
    } else {
      f.template Run<kGroup, false>(n);
    }
  }
  for (; n < states; ++n) {
    if (small) {
      f.template Run<1, true>(n);
    } else {
      f.template Run<1, false>(n);
    }
  }
}

template <typename V, typename T>
struct RecurGroup {
  template <int kCount, bool kSmall>
  void Run(int n) const {
    Recur<V, kCount, kSmall, T>(block, B, C, states, n, tokens, tile);
  }
  const Block<V, T>& block;
  const Arithmetic<T>* B;
  const Arithmetic<T>* C;
  int states, tokens;
  TileOfBlock<V, Arithmetic<T>>* tile;
};

// Calls f(begin, tokens) for the tiles of [begin, end).
template <typename F>
inline void ForEachTile(int64_t begin, int64_t end, F f) {
  for (; begin < end; begin += kTile) {
    f(begin, end - begin < kTile ? static_cast<int>(end - begin) : kTile);
  }
}

// Calls f(begin, end) for each period of the sequence.
template <typename T, typename F>
inline void ForEachPeriod(const ChannelScanArgs<T>& args, F f) {
  for (int64_t begin = 0; begin < args.tokens; begin += args.period) {
    const int64_t rest = args.tokens - begin;
    f(begin, begin + (rest < args.period ? rest : args.period));
  }
}

// Scans all channels. Scans each tile for all blocks before the next tile,
// while the tile is in the cache.
template <typename V, typename T>
void Scan(const ChannelScanArgs<T>& args,
          const ChannelScanForward<T>& results) {
  using Real = Arithmetic<T>;
  const int states = args.states;
  Scratch<Real> scratch{args.scratch};
  Real* B = scratch.Take(int64_t{kTile} * states);
  Real* C = scratch.Take(int64_t{kTile} * states);
  Block<V, T> blocks[kMaxScanChannels / V::kWidth];
  int count = 0;
  for (int c = 0; c < args.channels; c += V::kWidth) {
    blocks[count++] = Block<V, T>(args, c, scratch);
  }
  const auto clear = [&] {
    for (int b = 0; b < count; ++b) Clear(blocks[b].h, states * V::kWidth);
  };
  TileOfBlock<V, Real> tile;
  clear();
  ForEachPeriod(args, [&](int64_t from, int64_t to) {
    if (from > 0) clear();
    ForEachTile(from, to, [&](int64_t begin, int tokens) {
      ReadShared(args.B, states, begin, tokens, B);
      ReadShared(args.C, states, begin, tokens, C);
      for (int b = 0; b < count; ++b) {
        const Block<V, T>& block = blocks[b];
        block.Prepare(args, begin, tokens, &tile);
        ForEachGroup(states, tile.small,
                     RecurGroup<V, T>{block, B, C, states, tokens, &tile});
        if (args.z.data != nullptr) {
          LoadTile<V>(args.z, block.channel, block.lanes, begin, tokens,
                      tile.v);
          for (int i = 0; i < tokens; ++i) {
            const V z = V::Load(tile.v[i]);
            const V silu = OverOnePlusExp2(z, z * V::Set(-kLog2EOf<Real>));
            (V::Load(tile.y[i]) * silu).Store(tile.y[i]);
          }
        }
        StoreTile<V>(tile.y, results.out, block.channel, block.lanes, begin,
                     tokens);
      }
    });
  });
  for (int b = 0; b < count; ++b) {
    for (int c = 0; c < blocks[b].lanes; ++c) {
      for (int n = 0; n < states; ++n) {
        results.last_state[int64_t{blocks[b].channel + c} * states + n] =
            blocks[b].h[n * V::kWidth + c];
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_SIMD_H_
