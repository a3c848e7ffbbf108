#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/linear/packed_gemm.h"
#include "kernels/sequence/attention.h"

namespace sfmamba::kernels {
namespace {

// The maximum numbers of keys and queries in a block. They are so small that
// the block's scores and its packed keys and values stay in the L2 cache.
constexpr int64_t kBlockKeys = 512, kBlockQueries = 128;
// Products are faster if the number of outputs is a multiple of kOutputStep.
// The number of outputs is rounded up to such a multiple if the memory has room
// for the additional outputs.
constexpr int64_t kOutputStep = 16;
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

// Returns a step size. The number of inputs of a product (GemmArgs::in) must be
// a multiple of the step size, and missing inputs are padded with zeros. If AMX
// is used, the step size is kKeyStep<BFloat16>, so that AMX can read the inputs
// without copying them first. Otherwise the step size is 1.
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

// Packs a matrix [out, in] and pads the inputs with zeros to a multiple of
// InputStep().
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

// Memory that begins at the start of a cache line, because tiles are then read
// fastest.
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

// The memory of a thread, which grows to the size that the largest call needs.
template <typename W>
struct Workspace {
  Buffer<W> queries, keys, values, weights;  // One block each.
  Buffer<float> scores, shrink;              // One block each.
  Buffer<float> largest, sums, y;            // All queries.
};

// A block of queries and a block of keys.
template <typename W>
struct Block {
  ScoreBlock<W> scores;
  int64_t begin;     // The first query.
  bool last;         // Whether this is the last block of keys.
  W *keys, *values;  // Packed.
  W* queries;        // For bf16 only: room for padded queries.
  float* y;          // Weighted sums of the values, [queries, d].
  int64_t y_stride;
  int64_t outputs;  // Values per row of y, at least d. The rest is padding.
};

// The inputs of a product, with rows `stride` elements apart.
template <typename W>
struct Inputs {
  const W* x;
  int64_t stride;
};

void SetInputs(const Inputs<float>& inputs, PackedGemmArgs* product) {
  product->x = inputs.x;
  product->x_stride = inputs.stride;
}
void SetInputs(const Inputs<BFloat16>& inputs, Bf16GemmArgs* product) {
  product->x_bf16 = inputs.x;
  product->x_stride = inputs.stride;
}

// These return the queries of a block. Queries in bf16 are copied, and each is
// padded with zeros to a multiple of kKeyStep<BFloat16> values.
Inputs<float> Queries(const AttentionArgs<float>& args,
                      const Block<float>& block) {
  return {args.q + block.begin * args.q_stride, args.q_stride};
}
Inputs<BFloat16> Queries(const AttentionArgs<BFloat16>& args,
                         const Block<BFloat16>& block) {
  const int64_t stride = RoundUp(args.d, kKeyStep<BFloat16>);
  for (int64_t i = 0; i < block.scores.queries; ++i) {
    BFloat16* const row = block.queries + i * stride;
    std::copy_n(args.q + (block.begin + i) * args.q_stride, args.d, row);
    std::fill(row + args.d, row + stride, BFloat16());
  }
  return {block.queries, stride};
}

// Computes the scores of a block from its queries and keys.
template <typename W>
void MultiplyKeys(const AttentionArgs<W>& args, const Block<W>& block,
                  CpuIsa isa) {
  GemmArgs<W> product{};
  product.rows = block.scores.queries;
  product.in = RoundUp(args.d, InputStep<W>(isa));
  product.out = RoundUp(block.scores.keys, kOutputStep);
  SetInputs(Queries(args, block), &product);
  product.weights = block.keys;
  product.y = block.scores.scores;
  product.y_stride = block.scores.stride;
  PackedGemmCpu(product, isa);
}

// Adds the values of a block, multiplied by their weights, to y. Before that,
// rescales y unless this is the first block of keys.
template <typename W>
void AddValues(const AttentionArgs<W>& args, const Block<W>& block,
               CpuIsa isa) {
  const ScoreBlock<W>& scores = block.scores;
  if (!scores.first) {
    ScaleRows<float>({scores.queries, args.d, block.y, block.y_stride,
                      scores.shrink, block.y, block.y_stride},
                     isa);
  }
  GemmArgs<W> product{};
  product.rows = scores.queries;
  product.in = RoundUp(scores.keys, InputStep<W>(isa));
  product.out = block.outputs;
  SetInputs(Inputs<W>{scores.weights, scores.stride}, &product);
  product.weights = block.values;
  product.add = !scores.first;
  product.y = block.y;
  product.y_stride = block.y_stride;
  PackedGemmCpu(product, isa);
}

// Divides the weighted sums of the values by the sums of the weights, and
// writes the results to args.y.
template <typename W>
void Divide(const AttentionArgs<W>& args, const Block<W>& block, CpuIsa isa) {
  const ScoreBlock<W>& scores = block.scores;
  float factors[kBlockQueries];
  for (int64_t i = 0; i < scores.queries; ++i) factors[i] = 1 / scores.sums[i];
  ScaleRows<W>({scores.queries, args.d, block.y, block.y_stride, factors,
                args.y + block.begin * args.y_stride, args.y_stride},
               isa);
}

// Processes one block of keys for all queries. `block` has the keys and values.
template <typename W>
void AttendTo(const AttentionArgs<W>& args, Block<W> block, CpuIsa isa) {
  ScoreBlock<W>& scores = block.scores;
  for (; block.begin < args.queries; block.begin += kBlockQueries) {
    scores.queries = std::min(kBlockQueries, args.queries - block.begin);
    MultiplyKeys(args, block, isa);
    SoftmaxBlock(scores, isa);
    AddValues(args, block, isa);
    if (block.last) Divide(args, block, isa);
    scores.largest += kBlockQueries;
    scores.sums += kBlockQueries;
    block.y += kBlockQueries * block.y_stride;
  }
}

// Returns a block that uses the memory of this thread. `most` is the maximum
// number of keys in a block.
template <typename W>
Block<W> Allocate(const AttentionArgs<W>& args, int64_t most, CpuIsa isa) {
  thread_local Workspace<W> space;
  const int64_t step = InputStep<W>(isa);
  Block<W> block{};
  block.keys = space.keys.Reserve(
      PackedWeightsSize<W>(RoundUp(args.d, step), most, isa));
  block.values = space.values.Reserve(
      PackedWeightsSize<W>(RoundUp(most, step), args.d, isa));
  ScoreBlock<W>& scores = block.scores;
  // The additional step avoids a stride that is a large power of two. Such a
  // stride would put the rows of a tile into the same few sets of the cache.
  scores.stride = RoundUp(most, kKeyStep<W>) + kKeyStep<W>;
  scores.scores = space.scores.Reserve(kBlockQueries * scores.stride);
  scores.largest = space.largest.Reserve(args.queries);
  scores.sums = space.sums.Reserve(args.queries);
  scores.shrink = space.shrink.Reserve(kBlockQueries);
  if constexpr (std::is_same_v<W, float>) {
    scores.weights = scores.scores;
    block.y = args.y;
    block.y_stride = args.y_stride;
    block.outputs = args.d;
  } else {
    scores.weights = space.weights.Reserve(kBlockQueries * scores.stride);
    block.queries =
        space.queries.Reserve(kBlockQueries * RoundUp(args.d, kKeyStep<W>));
    block.y_stride = block.outputs = RoundUp(args.d, kOutputStep);
    block.y = space.y.Reserve(args.queries * block.y_stride);
  }
  return block;
}

}  // namespace

template <typename W>
void AttentionCpu(const AttentionArgs<W>& args, CpuIsa isa) {
  Block<W> block = Allocate(args, std::min(kBlockKeys, args.tokens), isa);
  ScoreBlock<W>& scores = block.scores;
  scores.scale =
      static_cast<float>(kLog2e / std::sqrt(static_cast<double>(args.d)));
  const int64_t blocks = (args.tokens + kBlockKeys - 1) / kBlockKeys;
  for (int64_t b = 0; b < blocks; ++b) {  // Blocks are nearly equal in size.
    const int64_t first = args.tokens * b / blocks;
    scores.keys = args.tokens * (b + 1) / blocks - first;
    scores.first = b == 0;
    block.last = b + 1 == blocks;
    PackSteps(Matrix(args.k + first * args.k_stride, args.k_stride, 1), args.d,
              scores.keys, block.keys, isa);
    PackSteps(Matrix(args.v + first * args.v_stride, 1, args.v_stride),
              scores.keys, args.d, block.values, isa);
    AttendTo(args, block, isa);
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
