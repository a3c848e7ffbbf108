#include "server/repository/precision/fast_precision.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "kernels/linear/packed_gemm.h"

namespace sfmamba::repository {
namespace {

// The measured product multiplies a [kRows, kIn] matrix by a [kIn, kOut]
// matrix. This is the largest product in stage 3 of SF-Mamba T. It occurs in
// the first layer of an MLP, for the tokens of one window.
constexpr int64_t kRows = 198, kIn = 320, kOut = 1280;
// The number of runs for each precision. The shortest run counts.
constexpr int kRuns = 4;

struct alignas(64) Line {
  float values[16] = {};
};

// A matrix product with weights of type W.
template <typename W>
class Product {
 public:
  Product() {
    kernels::PackWeights(std::vector<float>(kIn * kOut, 0.5f).data(), kIn, kOut,
                         Values<W>(weights_));
    args_.rows = kRows;
    args_.in = args_.x_stride = kIn;
    args_.out = args_.y_stride = kOut;
    args_.x = Values<float>(x_);
    args_.weights = Values<W>(weights_);
    args_.y = Values<float>(y_);
  }

  absl::Duration Time() const {
    const absl::Time start = base::SteadyNow();
    kernels::PackedGemmCpu(args_);
    return base::SteadyNow() - start;
  }

 private:
  static std::vector<Line> Lines(int64_t bytes) {
    return std::vector<Line>((bytes + sizeof(Line) - 1) / sizeof(Line));
  }
  template <typename T>
  static T* Values(std::vector<Line>& lines) {
    return reinterpret_cast<T*>(lines.data());
  }

  std::vector<Line> x_ = Lines(kRows * kIn * sizeof(float));
  std::vector<Line> weights_ =
      Lines(kernels::PackedWeightsSize<W>(kIn, kOut) * sizeof(W));
  std::vector<Line> y_ = Lines(kRows * kOut * sizeof(float));
  kernels::GemmArgs<W> args_{};
};

// Returns true if the product is faster in bf16 than in fp32. W is the type of
// the weights in the fp32 product, either float or SplitFloat.
template <typename W>
bool Bf16IsFaster() {
  const Product<kernels::BFloat16> reduced;
  const Product<W> full;
  absl::Duration reduced_time = absl::InfiniteDuration();
  absl::Duration full_time = absl::InfiniteDuration();
  // Alternates between the precisions, so that other processes slow both
  // precisions equally.
  for (int i = 0; i < kRuns; ++i) {
    reduced_time = std::min(reduced_time, reduced.Time());
    full_time = std::min(full_time, full.Time());
  }
  return reduced_time < full_time;
}

}  // namespace

model::Precision FastPrecision() {
  static const bool bf16 =
      kernels::HasAvx512Bf16() && (kernels::SplitGemmIsFaster(kIn, kOut)
                                       ? Bf16IsFaster<kernels::SplitFloat>()
                                       : Bf16IsFaster<float>());
  return bf16 ? model::Precision::kBFloat16 : model::Precision::kFloat32;
}

}  // namespace sfmamba::repository
