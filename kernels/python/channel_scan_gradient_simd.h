// Computes the gradient of channel_scan.h by vectors of type V, one channel per
// lane. channel_scan_isa.cc includes this header and is compiled once for each
// instruction set, with a different V.
//
// G[n] is the gradient of the state after token i, and decay[n,i] is
// exp(step[i] * A[n]). G[n] is computed from the last token back to the first:
//   G[n]    = C[n,i] * dy[i] + decay[n,i+1] * G[n] of token i+1
//   dC[n,i] = dy[i] * h[n,i]            dB[n,i] = G[n] * step[i] * u[i]
//   E[n]    = G[n] * decay[n,i] * h[n,i-1]
//   dA[n]   = sum over i of step[i] * E[n]
//   du[i]   = D * dy[i] + step[i] * sum over n of G[n] * B[n,i]
//   dstep[i] = sum over n of (E[n] * A[n] + u[i] * G[n] * B[n,i])
#ifndef SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_GRADIENT_SIMD_H_
#define SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_GRADIENT_SIMD_H_

#include "kernels/python/channel_scan_simd.h"

namespace sfmamba::kernels {
namespace {

// A block of channels and the sums of its gradients.
template <typename V, typename T>
struct GradientBlock {
  using Real = Arithmetic<T>;

  Block<V, T> forward;
  Real* carry;  // [states, kWidth], decay * G of the token after the tile
  Real* dA;     // [states, kWidth]
  V dD, dbias;
};

// The gradients of a tile in kWidth channels.
template <typename V, typename Real>
struct TileGradients {
  alignas(64) Real dout[kTile][V::kWidth];
  alignas(64) Real dy[kTile][V::kWidth];
  alignas(64) Real by_B[kTile][V::kWidth];  // Sum over n of G * B
  alignas(64) Real by_A[kTile][V::kWidth];  // Sum over n of E * A
};

// Computes the gradients of kCount states, which begin with state n, from the
// tile's last token back to its first. block.forward.h holds the states at the
// start of the tile.
template <typename V, typename T>
struct BackGroup {
  using Real = Arithmetic<T>;
  static constexpr int kWidth = V::kWidth;

  template <int kCount, bool kSmall>
  void Run(int n) const {
    alignas(64) Real h[kTile + 1][kCount][kWidth];
    alignas(64) Real decay[kTile][kCount][kWidth];
    V A[kCount];
    for (int m = 0; m < kCount; ++m) {
      A[m] = V::Load(block.forward.A + (n + m) * kWidth);
      V::Load(block.forward.h + (n + m) * kWidth).Store(h[0][m]);
    }
    for (int i = 0; i < tokens; ++i) {
      const V s = V::Load(tile->s[i]), g = V::Load(tile->g[i]);
      V y = V::Load(tile->y[i]), power[kCount];
      if constexpr (kSmall) {
        Exp2Products<kCount>(A, s, power);
      } else {
        Exp2ProductsUnbounded<kCount>(A, s, power);
      }
      for (int m = 0; m < kCount; ++m) {
        const int shared = i * states + n + m;
        const V next = Fma(power[m], V::Load(h[i][m]), g * V::Set(B[shared]));
        y = Fma(V::Set(C[shared]), next, y);
        power[m].Store(decay[i][m]);
        next.Store(h[i + 1][m]);
      }
      y.Store(tile->y[i]);
    }
    V carry[kCount], dA_[kCount];
    for (int m = 0; m < kCount; ++m) {
      carry[m] = V::Load(block.carry + (n + m) * kWidth);
      dA_[m] = V::Load(block.dA + (n + m) * kWidth);
    }
    for (int i = tokens - 1; i >= 0; --i) {
      const V dy = V::Load(gradients->dy[i]), g = V::Load(tile->g[i]);
      const V step = V::Load(tile->s[i]) * V::Set(kLn2Of<Real>);
      V by_B = V::Load(gradients->by_B[i]), by_A = V::Load(gradients->by_A[i]);
      for (int m = 0; m < kCount; ++m) {
        const int shared = i * states + n + m;
        Real* to_B = dB + int64_t{shared} * kWidth;
        Real* to_C = dC + int64_t{shared} * kWidth;
        const V G = Fma(V::Set(C[shared]), dy, carry[m]);
        Fma(dy, V::Load(h[i + 1][m]), V::Load(to_C)).Store(to_C);
        Fma(G, g, V::Load(to_B)).Store(to_B);
        by_B = Fma(G, V::Set(B[shared]), by_B);
        carry[m] = V::Load(decay[i][m]) * G;
        const V E = carry[m] * V::Load(h[i][m]);
        by_A = Fma(E, A[m], by_A);
        dA_[m] = Fma(E, step, dA_[m]);
      }
      by_B.Store(gradients->by_B[i]);
      by_A.Store(gradients->by_A[i]);
    }
    for (int m = 0; m < kCount; ++m) {
      carry[m].Store(block.carry + (n + m) * kWidth);
      dA_[m].Store(block.dA + (n + m) * kWidth);
    }
  }

  const GradientBlock<V, T>& block;
  const Real* B;  // [tokens, states]
  const Real* C;
  int states, tokens;
  TileOfBlock<V, Real>* tile;
  TileGradients<V, Real>* gradients;
  Real* dB;  // [tokens, states, kWidth], sums over blocks
  Real* dC;
};

// Computes the gradients of a tile for the channels of the block.
template <typename V, typename T>
void TileGradient(const ChannelScanArgs<T>& args,
                  const ChannelScanBackward<T>& to, int64_t begin, int tokens,
                  const BackGroup<V, T>& group, GradientBlock<V, T>* block) {
  using Real = Arithmetic<T>;
  const int channel = block->forward.channel, lanes = block->forward.lanes;
  TileOfBlock<V, Real>& tile = *group.tile;
  TileGradients<V, Real>& gradients = *group.gradients;
  alignas(64) Real z[kTile][V::kWidth], dz[kTile][V::kWidth];
  block->forward.Prepare(args, begin, tokens, &tile);
  LoadTile<V>(to.out, channel, lanes, begin, tokens, gradients.dout);
  if (args.z.data != nullptr) {
    LoadTile<V>(args.z, channel, lanes, begin, tokens, z);
  }
  for (int i = 0; i < tokens; ++i) {
    V dy = V::Load(gradients.dout[i]);
    if (args.z.data != nullptr) {
      const V x = V::Load(z[i]);
      const V sigmoid = OverOnePlusExp2(V::Set(1), x * V::Set(-kLog2EOf<Real>));
      const V silu = x * sigmoid;
      // The gradient times the derivative of SiLU. It is multiplied by y below.
      (dy * (sigmoid + silu * Fma(sigmoid, V::Set(-1), V::Set(1))))
          .Store(dz[i]);
      dy = dy * silu;
    }
    dy.Store(gradients.dy[i]);
    V::Set(0).Store(gradients.by_B[i]);
    V::Set(0).Store(gradients.by_A[i]);
  }
  ForEachGroup(args.states, tile.small, group);
  for (int i = 0; i < tokens; ++i) {
    const V dy = V::Load(gradients.dy[i]), by_B = V::Load(gradients.by_B[i]);
    const V u = V::Load(tile.u[i]);
    const V step = V::Load(tile.s[i]) * V::Set(kLn2Of<Real>);
    V dx = Fma(u, by_B, V::Load(gradients.by_A[i]));
    if (args.softplus) dx = OverOnePlusExp2(dx, Negate(V::Load(tile.v[i])));
    block->dD = Fma(dy, u, block->dD);
    block->dbias = block->dbias + dx;
    Fma(block->forward.D, dy, step * by_B).Store(tile.u[i]);
    dx.Store(tile.v[i]);
    if (args.z.data != nullptr) {
      (V::Load(dz[i]) * V::Load(tile.y[i])).Store(dz[i]);
    }
  }
  StoreTile<V>(tile.u, to.u, channel, lanes, begin, tokens);
  StoreTile<V>(tile.v, to.delta, channel, lanes, begin, tokens);
  if (args.z.data != nullptr) {
    StoreTile<V>(dz, to.z, channel, lanes, begin, tokens);
  }
}

// Writes the gradients that the block has summed over all tokens.
template <typename V, typename T>
void StoreSums(const GradientBlock<V, T>& block, int states,
               const ChannelScanBackward<T>& to) {
  using Real = Arithmetic<T>;
  Real dD[V::kWidth], dbias[V::kWidth];
  block.dD.Store(dD);
  block.dbias.Store(dbias);
  for (int c = 0; c < block.forward.lanes; ++c) {
    const int channel = block.forward.channel + c;
    to.D[channel] = dD[c];
    to.bias[channel] = dbias[c];
    for (int n = 0; n < states; ++n) {
      to.A[int64_t{channel} * states + n] = block.dA[n * V::kWidth + c];
    }
  }
}

// Makes two passes over the tiles of each period. The first pass visits the
// tiles in order and saves the states at the start of each tile. The second
// pass goes from the last tile back to the first and computes the gradients.
// Each pass processes a tile for all blocks of channels before the next tile.
template <typename V, typename T>
void ScanGradient(const ChannelScanArgs<T>& args,
                  const ChannelScanBackward<T>& to) {
  using Real = Arithmetic<T>;
  const int states = args.states;
  // The number of values in a block's state.
  const int64_t values = int64_t{states} * V::kWidth;
  Scratch<Real> scratch{args.scratch};
  Real* B = scratch.Take(int64_t{kTile} * states);
  Real* C = scratch.Take(int64_t{kTile} * states);
  Real* dB = scratch.Take(kTile * values);
  Real* dC = scratch.Take(kTile * values);
  GradientBlock<V, T> blocks[kMaxScanChannels / V::kWidth];
  int count = 0;
  for (int c = 0; c < args.channels; c += V::kWidth) {
    GradientBlock<V, T>& block = blocks[count++];
    block.forward = Block<V, T>(args, c, scratch);
    block.carry = scratch.Take(values);
    block.dA = scratch.Take(values);
    Clear(block.dA, values);
    block.dD = block.dbias = V::Set(0);
  }
  Real* saved = scratch.next;  // [tiles, blocks, states, kWidth]
  TileOfBlock<V, Real> tile;
  TileGradients<V, Real> gradients;
  ForEachPeriod(args, [&](int64_t from, int64_t end) {
    for (int b = 0; b < count; ++b) {
      Clear(blocks[b].forward.h, values);
      Clear(blocks[b].carry, values);
      if (to.last_state == nullptr || end < args.tokens) continue;
      for (int n = 0; n < states; ++n) {
        for (int c = 0; c < blocks[b].forward.lanes; ++c) {
          const int64_t channel = blocks[b].forward.channel + c;
          blocks[b].carry[n * V::kWidth + c] =
              to.last_state[channel * states + n];
        }
      }
    }
    Real* next = saved;
    ForEachTile(from, end, [&](int64_t begin, int tokens) {
      ReadShared(args.B, states, begin, tokens, B);
      ReadShared(args.C, states, begin, tokens, C);
      for (int b = 0; b < count; ++b) {
        const Block<V, T>& block = blocks[b].forward;
        for (int64_t i = 0; i < values; ++i) *next++ = block.h[i];
        if (begin + tokens == end) continue;
        block.Prepare(args, begin, tokens, &tile);
        ForEachGroup(states, tile.small,
                     RecurGroup<V, T>{block, B, C, states, tokens, &tile});
      }
    });
    for (int64_t begin = from + (end - from - 1) / kTile * kTile; begin >= from;
         begin -= kTile) {
      const int tokens =
          end - begin < kTile ? static_cast<int>(end - begin) : kTile;
      ReadShared(args.B, states, begin, tokens, B);
      ReadShared(args.C, states, begin, tokens, C);
      Clear(dB, tokens * values);
      Clear(dC, tokens * values);
      const Real* at_start = saved + (begin - from) / kTile * count * values;
      for (int b = 0; b < count; ++b) {
        for (int64_t i = 0; i < values; ++i) {
          blocks[b].forward.h[i] = at_start[b * values + i];
        }
        TileGradient(args, to, begin, tokens,
                     BackGroup<V, T>{blocks[b], B, C, states, tokens, &tile,
                                     &gradients, dB, dC},
                     &blocks[b]);
      }
      for (int n = 0; n < states; ++n) {
        for (int i = 0; i < tokens; ++i) {
          const int64_t at = (int64_t{i} * states + n) * V::kWidth;
          to.B[n * args.tokens + begin + i] = Sum(V::Load(dB + at));
          to.C[n * args.tokens + begin + i] = Sum(V::Load(dC + at));
        }
      }
    }
  });
  for (int b = 0; b < count; ++b) StoreSums(blocks[b], states, to);
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PYTHON_CHANNEL_SCAN_GRADIENT_SIMD_H_
