#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/linear/packed_gemm.h"
#include "kernels/sequence/attention.h"

namespace sfmamba::kernels {
namespace {

// The most keys and queries in a block, so that its scores and packed keys and
// values stay in the L2 cache.
constexpr int64_t kBlockKeys = 512, kBlockQueries = 64;
constexpr double kLog2e = 1.4426950408889634;

template <typename W>
void SoftmaxBlock(const ScoreBlock<W>& block, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return SoftmaxBlockScalar(block);
    case CpuIsa::kAvx2:
      return SoftmaxBlockAvx2(block);
    case CpuIsa::kAvx512:
      if constexpr (std::is_same_v<W, BFloat16>) {
        static const bool rounds = HasAvx512Bf16();
        if (rounds) return SoftmaxBlockAvx512Bf16(block);
      }
      return SoftmaxBlockAvx512(block);
  }
}

template <typename W>
void ScaleRows(const ScaleRowsArgs<W>& args, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return ScaleRowsScalar(args);
    case CpuIsa::kAvx2:
      return ScaleRowsAvx2(args);
    case CpuIsa::kAvx512:
      return ScaleRowsAvx512(args);
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

int64_t RoundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// Memory of one thread, which grows to what its largest problem needs.
template <typename W>
struct Workspace {
  std::vector<W> keys, values, weights;  // Of a block.
  std::vector<float> scores;             // Of a block.
  std::vector<float> largest, sums, y;   // Of all queries.
};

template <typename T>
void Reserve(size_t count, std::vector<T>* values) {
  if (values->size() < count) values->resize(count);
}

// Where the sums of all queries are, [queries, d].
struct Sums {
  float* y;
  int64_t stride;
};

// A block of keys, packed, with their values.
template <typename W>
struct KeyBlock {
  const W* keys;    // [count, d]
  const W* values;  // [d, count]
  bool last;
};

// Adds what a block of keys gives to queries [begin, begin + block->queries),
// and divides by the sums of their weights after the last one.
template <typename W>
void Attend(const AttentionArgs<W>& args, const KeyBlock<W>& keys,
            int64_t begin, const ScoreBlock<W>& block, const Sums& sums,
            CpuIsa isa) {
  GemmArgs<W> product{};
  product.rows = block.queries;
  product.in = args.d;
  product.out = block.keys;
  SetInputs(args.q + begin * args.q_stride, &product);
  product.x_stride = args.q_stride;
  product.weights = keys.keys;
  product.y = block.scores;
  product.y_stride = block.stride;
  PackedGemmCpu(product, isa);
  SoftmaxBlock(block, isa);
  float* const y = sums.y + begin * sums.stride;
  if (!block.first) {
    ScaleRows<float>(
        {block.queries, args.d, y, sums.stride, block.shrink, y, sums.stride},
        isa);
  }
  product = {};
  product.rows = block.queries;
  product.in = block.keys;
  product.out = args.d;
  SetInputs(block.weights, &product);
  product.x_padded = product.x_bf16 != nullptr;
  product.x_stride = block.stride;
  product.weights = keys.values;
  product.add = !block.first;
  product.y = y;
  product.y_stride = sums.stride;
  PackedGemmCpu(product, isa);
  if (!keys.last) return;
  float factors[kBlockQueries];
  for (int64_t i = 0; i < block.queries; ++i) factors[i] = 1 / block.sums[i];
  ScaleRows<W>({block.queries, args.d, y, sums.stride, factors,
                args.y + begin * args.y_stride, args.y_stride},
               isa);
}

}  // namespace

template <typename W>
void AttentionCpu(const AttentionArgs<W>& args, CpuIsa isa) {
  const int64_t most = std::min(kBlockKeys, args.tokens);
  // Not a multiple of a page's size, which would put the rows of a tile into
  // the same sets of the cache.
  const int64_t stride = RoundUp(most, kKeyStep<W>) + kKeyStep<W>;
  thread_local Workspace<W> space;
  Reserve(PackedWeightsSize<W>(args.d, most, isa), &space.keys);
  Reserve(PackedWeightsSize<W>(most, args.d, isa), &space.values);
  Reserve(kBlockQueries * stride, &space.scores);
  Reserve(args.queries, &space.largest);
  Reserve(args.queries, &space.sums);
  ScoreBlock<W> block{};
  Sums results{};
  if constexpr (std::is_same_v<W, float>) {
    block.weights = space.scores.data();
    results = {args.y, args.y_stride};
  } else {
    Reserve(kBlockQueries * stride, &space.weights);
    block.weights = space.weights.data();
    Reserve(args.queries * args.d, &space.y);
    results = {space.y.data(), args.d};
  }
  float shrink[kBlockQueries];
  block.scores = space.scores.data();
  block.stride = stride;
  block.scale =
      static_cast<float>(kLog2e / std::sqrt(static_cast<double>(args.d)));
  block.shrink = shrink;
  const int64_t key_blocks = (args.tokens + kBlockKeys - 1) / kBlockKeys;
  const int64_t query_blocks =
      (args.queries + kBlockQueries - 1) / kBlockQueries;
  for (int64_t b = 0; b < key_blocks;
       ++b) {  // Blocks are nearly equal in size.
    const int64_t first = args.tokens * b / key_blocks;
    block.first = b == 0;
    block.keys = args.tokens * (b + 1) / key_blocks - first;
    PackWeights(ToPack(args.k + first * args.k_stride, args.k_stride, 1),
                args.d, block.keys, space.keys.data(), isa);
    PackWeights(ToPack(args.v + first * args.v_stride, 1, args.v_stride),
                block.keys, args.d, space.values.data(), isa);
    const KeyBlock<W> keys{space.keys.data(), space.values.data(),
                           b + 1 == key_blocks};
    for (int64_t q = 0; q < query_blocks; ++q) {
      const int64_t begin = args.queries * q / query_blocks;
      block.queries = args.queries * (q + 1) / query_blocks - begin;
      block.largest = space.largest.data() + begin;
      block.sums = space.sums.data() + begin;
      Attend(args, keys, begin, block, results, isa);
    }
  }
}

template void AttentionCpu(const AttentionArgs<float>&, CpuIsa);
template void AttentionCpu(const AttentionArgs<BFloat16>&, CpuIsa);

template <typename W>
void SoftmaxBlockScalar(const ScoreBlock<W>& block) {
  for (int64_t i = 0; i < block.queries; ++i) {
    const float* scores = block.scores + i * block.stride;
    W* weights = block.weights + i * block.stride;
    float largest = block.first ? scores[0] : block.largest[i];
    for (int64_t c = 0; c < block.keys; ++c) {
      if (scores[c] > largest) largest = scores[c];
    }
    float sum = 0;
    for (int64_t c = 0; c < block.keys; ++c) {
      const float weight = std::exp2(block.scale * (scores[c] - largest));
      weights[c] = W(weight);
      sum += weight;
    }
    std::fill(weights + block.keys, weights + RoundUp(block.keys, kKeyStep<W>),
              W());
    if (!block.first) {
      block.shrink[i] = std::exp2(block.scale * (block.largest[i] - largest));
      sum += block.sums[i] * block.shrink[i];
    }
    block.largest[i] = largest;
    block.sums[i] = sum;
  }
}

template void SoftmaxBlockScalar(const ScoreBlock<float>&);
template void SoftmaxBlockScalar(const ScoreBlock<BFloat16>&);

template <typename W>
void ScaleRowsScalar(const ScaleRowsArgs<W>& args) {
  for (int64_t i = 0; i < args.rows; ++i) {
    for (int64_t c = 0; c < args.columns; ++c) {
      args.y[i * args.y_stride + c] =
          W(args.x[i * args.x_stride + c] * args.factors[i]);
    }
  }
}

template void ScaleRowsScalar(const ScaleRowsArgs<float>&);
template void ScaleRowsScalar(const ScaleRowsArgs<BFloat16>&);

}  // namespace sfmamba::kernels
