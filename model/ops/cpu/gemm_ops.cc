#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ATen/record_function.h"
#include "kernels/linear/packed_gemm.h"
#include "kernels/simd/cpu_features.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/kernel_types.h"
#include "model/ops/parallel.h"
#include "model/weights/weight_memory.h"

namespace sfmamba::ops {
namespace {

// Each thread gets at least this many multiplications. They take about 10 us,
// which is longer than waking a thread.
constexpr int64_t kGrainProducts = 1 << 19;
// Reading a weight takes as long as this many multiplications.
constexpr int64_t kReadProducts = 8;
// The threads divide the rows if each thread gets at least this many. If they
// divided the outputs, each thread would have to read all rows of x, which
// other threads have written. For many rows, this takes longer than reading all
// weights in each thread. But if loops have more parts than threads, the
// outputs are divided. If the rows were divided, each of the many parts would
// read all weights.
constexpr int64_t kDividedRows = 64;

int64_t Grain(int64_t products) {
  return std::max<int64_t>(1, kGrainProducts / std::max<int64_t>(1, products));
}

// Divides the rows among the threads if there are many rows or few outputs. In
// other cases, divides the outputs in whole panels (see
// kernels/linear/packed_gemm.h), so that each thread reads different weights.
template <typename W>
void MultiplyInParallel(const kernels::GemmArgs<W>& args) {
  const int64_t width = kernels::PanelWidth<W>();
  const int64_t panels = (args.out + width - 1) / width;
  const int64_t threads = LoopThreads();
  const bool has_many_rows =
      args.rows >= kDividedRows * threads && !LoopsHaveManyParts();
  if (!has_many_rows && panels >= 4 * threads) {
    ParallelFor(panels, Grain((args.rows + kReadProducts) * args.in * width),
                [&](int64_t begin, int64_t end) {
                  kernels::PackedGemmCpu(kernels::SliceOutputs(
                      args, begin * width, std::min(end * width, args.out)));
                });
  } else {
    ParallelFor(args.rows, Grain(args.in * args.out),
                [&](int64_t begin, int64_t end) {
                  kernels::PackedGemmCpu(kernels::SliceRows(args, begin, end));
                });
  }
}

bool IsFinite(const at::Tensor& dense) {
  const float* values = dense.const_data_ptr<float>();
  return std::all_of(values, values + dense.numel(),
                     [](float value) { return std::isfinite(value); });
}

template <typename W>
at::Tensor Pack(const at::Tensor& weight, at::ScalarType type) {
  const int64_t out = weight.size(0), in = weight.size(1);
  const at::Tensor values =
      weights::EmptyWeights(kernels::PackedWeightsSize<W>(in, out), type);
  kernels::PackWeights(weight.const_data_ptr<float>(), in, out,
                       Data<W>(values));
  return values;
}

}  // namespace

PackedWeights PackGemm(const at::Tensor& weight, at::ScalarType type) {
  const at::Tensor dense = weight.to(at::kFloat).contiguous();
  PackedWeights packed{{}, dense.size(1), dense.size(0)};
  if (type == at::kBFloat16) {
    packed.values = Pack<kernels::BFloat16>(dense, type);
  } else if (kernels::SplitGemmIsFaster(packed.in, packed.out) &&
             IsFinite(dense)) {
    packed.values = Pack<kernels::SplitFloat>(dense, type);
    packed.split = true;
  } else {
    packed.values = Pack<float>(dense, type);
  }
  return packed;
}

void Gemm(const at::Tensor& x, const PackedWeights& weights,
          const at::Tensor& bias, GemmOutput output, at::Tensor y) {
  RECORD_FUNCTION("sfmamba::product", c10::ArrayRef<const c10::IValue>{});
  TORCH_CHECK(x.size(1) == weights.in && y.size(1) == weights.out &&
                  x.size(0) == y.size(0) && y.stride(1) == 1,
              "expected [rows, ", weights.in, "] to [rows, ", weights.out,
              "], got ", x.sizes(), " to ", y.sizes());
  TORCH_CHECK(
      weights.values.scalar_type() == at::kBFloat16 ||
          (x.scalar_type() == at::kFloat && y.scalar_type() == at::kFloat),
      "expected fp32 for weights of fp32, got ", x.scalar_type(), " to ",
      y.scalar_type());
  TORCH_CHECK(output != GemmOutput::kAdd || y.scalar_type() == at::kFloat,
              "expected to add in fp32, got ", y.scalar_type());
  const at::Tensor dense = x.stride(1) == 1 ? x : x.contiguous();
  DispatchWeights(weights, [&](auto type) {
    using W = decltype(type);
    kernels::GemmArgs<W> args{};
    args.rows = x.size(0);
    args.in = weights.in;
    args.out = weights.out;
    if (dense.scalar_type() == at::kBFloat16) {
      args.x_bf16 = Data<kernels::BFloat16>(dense);
    } else {
      args.x = dense.const_data_ptr<float>();
    }
    args.x_stride = dense.stride(0);
    args.weights = Data<W>(weights.values);
    if (bias.defined()) args.bias = bias.const_data_ptr<float>();
    args.add = output == GemmOutput::kAdd;
    if (y.scalar_type() == at::kBFloat16) {
      args.y_bf16 = Data<kernels::BFloat16>(y);
    } else {
      args.y = y.data_ptr<float>();
    }
    args.gelu = output == GemmOutput::kGeluErf;
    args.y_stride = y.stride(0);
    MultiplyInParallel(args);
  });
}

}  // namespace sfmamba::ops
