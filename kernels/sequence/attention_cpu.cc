#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/linear/packed_gemm.h"
#include "kernels/sequence/attention.h"

namespace sfmamba::kernels {
namespace {

// The most keys and queries in a block, so that its scores and packed keys and
// values stay in the L2 cache.
constexpr int64_t kBlockKeys = 512, kBlockQueries = 64;
// Keys are filled up to whole vectors.
constexpr int64_t kVector = 16;
constexpr double kLog2e = 1.4426950408889634;
constexpr float kNoScore = -std::numeric_limits<float>::infinity();

void SoftmaxBlock(const ScoreBlock& block, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return SoftmaxBlockScalar(block);
    case CpuIsa::kAvx2:
      return SoftmaxBlockAvx2(block);
    case CpuIsa::kAvx512:
      return SoftmaxBlockAvx512(block);
  }
}

// How products in W are given their inputs, keys and values.
void SetInputs(const float* x, PackedGemmArgs* product) { product->x = x; }
void SetInputs(const BFloat16* x, Bf16GemmArgs* product) {
  product->x_bf16 = x;
}

WeightMatrix ToPack(const float* values, int64_t out_stride,
                    int64_t in_stride) {
  return {values, out_stride, in_stride};
}
Bf16WeightMatrix ToPack(const BFloat16* values, int64_t out_stride,
                        int64_t in_stride) {
  return {values, out_stride, in_stride};
}

void Pack(const WeightMatrix& matrix, int64_t in, int64_t out, float* packed,
          CpuIsa isa) {
  PackWeights(matrix, in, out, packed, isa);
}
void Pack(const Bf16WeightMatrix& matrix, int64_t in, int64_t out,
          BFloat16* packed, CpuIsa) {
  PackWeights(matrix, in, out, packed);
}

// Where the sums of all queries are, [queries, d].
struct Sums {
  float* y;
  int64_t stride;
};

// A block of keys, packed, with their values.
template <typename W>
struct KeyBlock {
  int64_t count;
  const W* keys;    // [count, d]
  const W* values;  // [d, count]
};

// Adds what a block of keys gives to queries [begin, begin + block->queries).
template <typename W>
void Attend(const AttentionArgs<W>& args, const KeyBlock<W>& keys, bool first,
            int64_t begin, const ScoreBlock& block, const Sums& sums,
            CpuIsa isa) {
  GemmArgs<W> product{};
  product.rows = block.queries;
  product.in = args.d;
  product.out = keys.count;
  SetInputs(args.q + begin * args.q_stride, &product);
  product.x_stride = args.q_stride;
  product.weights = keys.keys;
  product.y = block.scores;
  product.y_stride = block.keys;
  PackedGemmCpu(product, isa);
  for (int64_t i = 0; i < block.queries; ++i) {
    float* row = block.scores + i * block.keys;
    std::fill(row + keys.count, row + block.keys, kNoScore);
  }
  SoftmaxBlock(block, isa);
  float* const y = sums.y + begin * sums.stride;
  for (int64_t i = 0; i < block.queries && !first; ++i) {
    for (int64_t c = 0; c < args.d; ++c) {
      y[i * sums.stride + c] *= block.shrink[i];
    }
  }
  product = {};
  product.rows = block.queries;
  product.in = keys.count;
  product.out = args.d;
  product.x = block.scores;
  product.x_stride = block.keys;
  product.weights = keys.values;
  product.add = !first;
  product.y = y;
  product.y_stride = sums.stride;
  PackedGemmCpu(product, isa);
}

// Divides a query's sums by those of its weights.
void Finish(const float* sums, int64_t d, float scale, float* y, CpuIsa) {
  for (int64_t c = 0; c < d; ++c) y[c] = sums[c] * scale;
}
void Finish(float* sums, int64_t d, float scale, BFloat16* y, CpuIsa isa) {
  Finish(sums, d, scale, sums, isa);
  RoundToBf16(sums, d, y, isa);
}

}  // namespace

template <typename W>
void AttentionCpu(const AttentionArgs<W>& args, CpuIsa isa) {
  const int64_t most = std::min(kBlockKeys, args.tokens);
  const int64_t width = (most + kVector - 1) / kVector * kVector;
  std::vector<W> keys(PackedWeightsSize<W>(args.d, most, isa));
  std::vector<W> values(PackedWeightsSize<W>(most, args.d, isa));
  const std::unique_ptr<float[]> scores(  // Not initialised.
      new float[std::min(kBlockQueries, args.queries) * width]);
  std::vector<float> largest(args.queries, kNoScore), sums(args.queries, 0.0f);
  std::vector<float> own;  // Where y is not fp32.
  Sums results{};
  if constexpr (std::is_same_v<W, float>) {
    results = {args.y, args.y_stride};
  } else {
    own.resize(args.queries * args.d);
    results = {own.data(), args.d};
  }
  float shrink[kBlockQueries];
  const int64_t key_blocks = (args.tokens + kBlockKeys - 1) / kBlockKeys;
  const int64_t query_blocks =
      (args.queries + kBlockQueries - 1) / kBlockQueries;
  for (int64_t b = 0; b < key_blocks;
       ++b) {  // Blocks are nearly equal in size.
    const int64_t first = args.tokens * b / key_blocks;
    const int64_t count = args.tokens * (b + 1) / key_blocks - first;
    Pack(ToPack(args.k + first * args.k_stride, args.k_stride, 1), args.d,
         count, keys.data(), isa);
    Pack(ToPack(args.v + first * args.v_stride, 1, args.v_stride), count,
         args.d, values.data(), isa);
    for (int64_t q = 0; q < query_blocks; ++q) {
      const int64_t begin = args.queries * q / query_blocks;
      ScoreBlock block{};
      block.queries = args.queries * (q + 1) / query_blocks - begin;
      block.keys = (count + kVector - 1) / kVector * kVector;
      block.scores = scores.get();
      block.scale =
          static_cast<float>(kLog2e / std::sqrt(static_cast<double>(args.d)));
      block.largest = largest.data() + begin;
      block.sums = sums.data() + begin;
      block.shrink = shrink;
      Attend(args, {count, keys.data(), values.data()}, b == 0, begin, block,
             results, isa);
    }
  }
  for (int64_t i = 0; i < args.queries; ++i) {
    Finish(results.y + i * results.stride, args.d, 1 / sums[i],
           args.y + i * args.y_stride, isa);
  }
}

template void AttentionCpu(const AttentionArgs<float>&, CpuIsa);
template void AttentionCpu(const AttentionArgs<BFloat16>&, CpuIsa);

void SoftmaxBlockScalar(const ScoreBlock& block) {
  for (int64_t i = 0; i < block.queries; ++i) {
    float* scores = block.scores + i * block.keys;
    const float before = block.largest[i];
    float largest = before;
    for (int64_t c = 0; c < block.keys; ++c) {
      if (scores[c] > largest) largest = scores[c];
    }
    float sum = 0;
    for (int64_t c = 0; c < block.keys; ++c) {
      scores[c] = std::exp2(block.scale * (scores[c] - largest));
      sum += scores[c];
    }
    block.largest[i] = largest;
    block.shrink[i] = std::exp2(block.scale * (before - largest));
    block.sums[i] = block.sums[i] * block.shrink[i] + sum;
  }
}

}  // namespace sfmamba::kernels
