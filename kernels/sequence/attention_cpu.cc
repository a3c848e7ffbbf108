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

bool RoundsToBf16() {
  static const bool rounds = HasAvx512Bf16();
  return rounds;
}

template <typename W>
void SoftmaxBlock(const ScoreBlock<W>& block, CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return SoftmaxBlockScalar(block);
    case CpuIsa::kAvx2:
      return SoftmaxBlockAvx2(block);
    case CpuIsa::kAvx512:
      if constexpr (std::is_same_v<W, BFloat16>) {
        if (RoundsToBf16()) return SoftmaxBlockAvx512Bf16(block);
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
      if constexpr (std::is_same_v<W, BFloat16>) {
        if (RoundsToBf16()) return ScaleRowsAvx512Bf16(args);
      }
      return ScaleRowsAvx512(args);
  }
}

int64_t RoundUp(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// AMX reads whole steps of inputs where they are. So its products are given
// such, filled up with zeros. Others are given as many as there are.
template <typename W>
int64_t InputStep(CpuIsa isa) {
  static const bool amx = std::is_same_v<W, BFloat16> && HasAmxBf16();
  return amx && isa == CpuIsa::kAvx512 ? kKeyStep<BFloat16> : 1;
}

WeightMatrix Matrix(const float* values, int64_t out_stride,
                    int64_t in_stride) {
  return {values, out_stride, in_stride};
}
Bf16WeightMatrix Matrix(const BFloat16* values, int64_t out_stride,
                        int64_t in_stride) {
  return {values, out_stride, in_stride};
}

// Packs a matrix [out, in] with whole steps of inputs.
template <typename W, typename M>
void PackSteps(M matrix, int64_t in, int64_t out, W* packed, CpuIsa isa) {
  const int64_t width = PanelWidth<W>(isa);
  const int64_t steps = RoundUp(in, InputStep<W>(isa));
  for (int64_t first = 0; first < out; first += width) {
    PackWeights(matrix, in, std::min(width, out - first), packed, isa);
    W* const end = packed + PackedWeightsSize<W>(steps, width, isa);
    std::fill(packed + PackedWeightsSize<W>(in, width, isa), end, W());
    packed = end;
    matrix.values += width * matrix.out_stride;
  }
}

// Memory that begins with a line of the cache, as tiles are read fastest.
template <typename T>
class Buffer {
 public:
  // Returns room for `count` values, whose contents are unspecified.
  T* Reserve(int64_t count) {
    const size_t lines = (count * sizeof(T) + sizeof(Line) - 1) / sizeof(Line);
    if (lines_.size() < lines) lines_.resize(lines);
    return lines_.data()->values;
  }

 private:
  struct alignas(64) Line {
    T values[64 / sizeof(T)];
  };
  std::vector<Line> lines_;
};

// A thread's memory, which grows to what its largest problem needs.
template <typename W>
struct Workspace {
  Buffer<W> queries, keys, values, weights;  // Of a block.
  Buffer<float> scores;                      // Of a block.
  Buffer<float> largest, sums, y;            // Of all queries.
};

// What is known of a block of queries and one of keys.
template <typename W>
struct Block {
  ScoreBlock<W> scores;
  bool last;               // No keys behind these.
  const W *keys, *values;  // Packed.
  W* queries;              // Room for [queries, d] in bf16, of whole steps.
  float* y;  // Sums of the values, [queries, d], rows y_stride apart.
  int64_t y_stride;
};

// Sets a block's queries as the inputs of a product.
void SetQueries(const float* q, int64_t q_stride, const Block<float>&,
                PackedGemmArgs* product) {
  product->x = q;
  product->x_stride = q_stride;
}
void SetQueries(const BFloat16* q, int64_t q_stride,
                const Block<BFloat16>& block, Bf16GemmArgs* product) {
  const int64_t d = product->in, stride = RoundUp(d, kKeyStep<BFloat16>);
  for (int64_t i = 0; i < block.scores.queries; ++i) {
    BFloat16* const row = block.queries + i * stride;
    std::copy_n(q + i * q_stride, d, row);
    std::fill(row + d, row + stride, BFloat16());
  }
  product->x_bf16 = block.queries;
  product->x_stride = stride;
  product->x_padded = true;
}

// The same for its weights.
void SetWeights(const ScoreBlock<float>& block, PackedGemmArgs* product) {
  product->x = block.weights;
  product->x_stride = block.stride;
}
void SetWeights(const ScoreBlock<BFloat16>& block, Bf16GemmArgs* product) {
  product->x_bf16 = block.weights;
  product->x_stride = block.stride;
  product->x_padded = true;
}

// Adds what a block of keys gives to queries from `begin` on, and divides by
// the sums of their weights after the last block.
template <typename W>
void Attend(const AttentionArgs<W>& args, int64_t begin, const Block<W>& block,
            CpuIsa isa) {
  const ScoreBlock<W>& scores = block.scores;
  GemmArgs<W> product{};
  product.rows = scores.queries;
  product.in = args.d;
  product.out = scores.keys;
  SetQueries(args.q + begin * args.q_stride, args.q_stride, block, &product);
  product.in = RoundUp(args.d, InputStep<W>(isa));
  product.weights = block.keys;
  product.y = scores.scores;
  product.y_stride = scores.stride;
  PackedGemmCpu(product, isa);
  SoftmaxBlock(scores, isa);
  if (!scores.first) {
    ScaleRows<float>({scores.queries, args.d, block.y, block.y_stride,
                      scores.shrink, block.y, block.y_stride},
                     isa);
  }
  product = {};
  product.rows = scores.queries;
  product.in = RoundUp(scores.keys, InputStep<W>(isa));
  product.out = args.d;
  SetWeights(scores, &product);
  product.weights = block.values;
  product.add = !scores.first;
  product.y = block.y;
  product.y_stride = block.y_stride;
  PackedGemmCpu(product, isa);
  if (!block.last) return;
  float factors[kBlockQueries];
  for (int64_t i = 0; i < scores.queries; ++i) factors[i] = 1 / scores.sums[i];
  ScaleRows<W>({scores.queries, args.d, block.y, block.y_stride, factors,
                args.y + begin * args.y_stride, args.y_stride},
               isa);
}

}  // namespace

template <typename W>
void AttentionCpu(const AttentionArgs<W>& args, CpuIsa isa) {
  const int64_t step = InputStep<W>(isa);
  const int64_t most = std::min(kBlockKeys, args.tokens);
  thread_local Workspace<W> space;
  float* const largest = space.largest.Reserve(args.queries);
  float* const sums = space.sums.Reserve(args.queries);
  float* y = nullptr;
  W* const keys = space.keys.Reserve(
      PackedWeightsSize<W>(RoundUp(args.d, step), most, isa));
  W* const values = space.values.Reserve(
      PackedWeightsSize<W>(RoundUp(most, step), args.d, isa));
  float shrink[kBlockQueries];
  Block<W> block{};
  block.keys = keys;
  block.values = values;
  ScoreBlock<W>& scores = block.scores;
  // Not a multiple of a page's size, which would put the rows of a tile into
  // the same sets of the cache.
  scores.stride = RoundUp(most, kKeyStep<W>) + kKeyStep<W>;
  scores.scores = space.scores.Reserve(kBlockQueries * scores.stride);
  scores.scale =
      static_cast<float>(kLog2e / std::sqrt(static_cast<double>(args.d)));
  scores.shrink = shrink;
  if constexpr (std::is_same_v<W, float>) {
    scores.weights = scores.scores;
    y = args.y;
    block.y_stride = args.y_stride;
  } else {
    scores.weights = space.weights.Reserve(kBlockQueries * scores.stride);
    block.queries =
        space.queries.Reserve(kBlockQueries * RoundUp(args.d, kKeyStep<W>));
    y = space.y.Reserve(args.queries * args.d);
    block.y_stride = args.d;
  }
  const int64_t key_blocks = (args.tokens + kBlockKeys - 1) / kBlockKeys;
  for (int64_t b = 0; b < key_blocks; ++b) {  // They are nearly equal in size.
    const int64_t first = args.tokens * b / key_blocks;
    scores.keys = args.tokens * (b + 1) / key_blocks - first;
    scores.first = b == 0;
    block.last = b + 1 == key_blocks;
    PackSteps(Matrix(args.k + first * args.k_stride, args.k_stride, 1), args.d,
              scores.keys, keys, isa);
    PackSteps(Matrix(args.v + first * args.v_stride, 1, args.v_stride),
              scores.keys, args.d, values, isa);
    for (int64_t begin = 0; begin < args.queries; begin += kBlockQueries) {
      scores.queries = std::min(kBlockQueries, args.queries - begin);
      scores.largest = largest + begin;
      scores.sums = sums + begin;
      block.y = y + begin * block.y_stride;
      Attend(args, begin, block, isa);
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
