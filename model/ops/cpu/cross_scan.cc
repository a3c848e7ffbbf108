#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "ATen/ops/cat.h"
#include "ATen/ops/empty.h"
#include "ATen/record_function.h"
#include "kernels/scan/selective_scan.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/parallel.h"
#include "model/ops/rows.h"
#include "model/ops/scan_arguments.h"

namespace sfmamba::ops {
namespace {

// The smallest number of values in a part of a copy and in a part of a scan.
// The scan needs more time per value.
constexpr int64_t kGrainValues = 16384;
constexpr int64_t kGrainScanned = 4096;
constexpr int64_t kBlockChannels = 16;  // Channels per call of the scan.

using ScanArgs = kernels::SelectiveScanArgs<float>;

// Calls body(i) for each i in [0, count), in parallel. Each item has `values`
// values. Each part of the loop has at least about `grain_values` values.
template <typename Body>
void ForEach(int64_t count, int64_t values, int64_t grain_values, Body body) {
  ParallelFor(count, std::max<int64_t>(1, grain_values / values),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) body(i);
              });
}

// Returns x [N, H, W, C], with a contiguous last axis, as [N, W, H, C],
// contiguous.
at::Tensor Transposed(const at::Tensor& x) {
  const int64_t height = x.size(1), width = x.size(2), channels = x.size(3);
  const at::Tensor y =
      at::empty({x.size(0), width, height, channels}, x.options());
  float* const to = y.data_ptr<float>();
  const float* const from = x.const_data_ptr<float>();
  ForEach(
      x.size(0) * width, height * channels, kGrainValues, [&](int64_t column) {
        const float* pixel =
            from + column / width * x.stride(0) + column % width * x.stride(2);
        float* out = to + column * height * channels;
        for (int64_t i = 0; i < height; ++i) {
          std::memcpy(out, pixel, channels * sizeof(float));
          pixel += x.stride(1);
          out += channels;
        }
      });
  return y;
}

// Computes rows += more_rows + transposed(columns + more_columns). The first
// two tensors are [N, H, W, C], and the other two are [N, W, H, C]. All are
// contiguous.
void AddUp(const at::Tensor& rows, const at::Tensor& more_rows,
           const at::Tensor& columns, const at::Tensor& more_columns) {
  const int64_t height = rows.size(1), width = rows.size(2);
  const int64_t channels = rows.size(3);
  float* const sums = rows.data_ptr<float>();
  const float* const backward = more_rows.const_data_ptr<float>();
  const float* const down = columns.const_data_ptr<float>();
  const float* const up = more_columns.const_data_ptr<float>();
  ForEach(
      rows.size(0) * height, width * channels, kGrainValues, [&](int64_t row) {
        const int64_t image = row / height, h = row % height;
        for (int64_t w = 0; w < width; ++w) {
          const int64_t at = (row * width + w) * channels;
          const int64_t other = ((image * width + w) * height + h) * channels;
          for (int64_t c = 0; c < channels; ++c) {
            sums[at + c] = (sums[at + c] + backward[at + c]) +
                           (down[other + c] + up[other + c]);
          }
        }
      });
}

// Runs all four scans in one parallel loop.
void ScanAll(const std::array<ScanArgs, 4>& scans) {
  const ScanArgs& first = scans[0];
  const int64_t blocks = (first.channels + kBlockChannels - 1) / kBlockChannels;
  const int64_t images = first.sequences.count;
  ForEach(scans.size() * images * blocks,
          first.sequences.length * kBlockChannels,
          LoopsHaveManyParts() ? kGrainValues : kGrainScanned, [&](int64_t i) {
            const int64_t channel = i % blocks * kBlockChannels;
            const int64_t image = i / blocks % images;
            const int direction = static_cast<int>(i / (blocks * images));
            ScanArgs args = scans[direction];
            args.sequences = args.sequences.Slice(image, image + 1);
            if (direction >= 2) args = Reversed(args);
            kernels::SelectiveScanCpu(kernels::SliceChannels(
                args, channel,
                std::min<int64_t>(channel + kBlockChannels, args.channels)));
          });
}

// Computes the projections of all four directions by one product. Backward
// scans use negative strides. So only the input of the scans along columns must
// be transposed. All is fp32 except the products.
class CpuCrossScan : public CrossScanOp {
 public:
  // The result has type `type`.
  CpuCrossScan(const Implementation& implementation,
               const CrossScanParameters& parameters, at::ScalarType type)
      : rank_(parameters.rank()), norm_(parameters.norm), type_(type) {
    const at::Tensor& x = parameters.x_proj;
    x_proj_ =
        implementation.MakeLinear({{at::cat({x[0], x[2], x[1], x[3]}), {}}});
    for (int i = 0; i < 4; ++i) {
      dt_proj_[i] = implementation.MakeLinear({{parameters.dt_proj[i], {}}});
      scans_[i] = {parameters.A.narrow(0, i, 1), parameters.D[i],
                   parameters.bias[i]};
    }
  }

  at::Tensor Forward(const at::Tensor& u) const override {
    RECORD_FUNCTION("sfmamba::cross_scan", c10::ArrayRef<const c10::IValue>{});
    // Contains the projections for the scans along rows, then the projections
    // for the scans along columns.
    const at::Tensor projected = x_proj_->Forward(u);
    const int64_t half = projected.size(3) / 2;
    const at::Tensor inputs[] = {u, Transposed(u)};
    const at::Tensor projections[] = {
        projected.narrow(3, 0, half),
        Transposed(projected.narrow(3, half, half))};
    std::array<at::Tensor, 4> dt, y;
    std::array<ScanArgs, 4> scans;
    for (int i = 0; i < 4; ++i) {
      const at::Tensor& own = inputs[i % 2];
      const at::Tensor p =
          AsRows(projections[i % 2]).narrow(1, i / 2 * (half / 2), half / 2);
      dt[i] = dt_proj_[i]->Forward(p.narrow(1, 0, rank_));
      y[i] = at::empty(own.sizes(), own.options());
      scans[i] = ScanArguments<float>(
          scans_[i], AsRows(own), dt[i], p.narrow(1, rank_, 1),
          p.narrow(1, rank_ + 1, 1), u.size(1) * u.size(2), AsRows(y[i]));
    }
    ScanAll(scans);
    AddUp(y[0], y[2], y[1], y[3]);
    return LayerNorm(y[0], norm_.gamma, norm_.beta, norm_.eps, /*length=*/1,
                     /*swap=*/false, type_);
  }

 private:
  const int64_t rank_;
  const LayerNormParameters norm_;
  const at::ScalarType type_;
  // Computes the projections of directions 0, 2, 1 and 3, in this order.
  std::unique_ptr<const LinearOp> x_proj_;
  std::array<std::unique_ptr<const LinearOp>, 4> dt_proj_;
  std::array<ScanParameters, 4> scans_;
};

}  // namespace

std::unique_ptr<CrossScanOp> CpuImplementation::MakeCrossScan(
    const CrossScanParameters& parameters) const {
  // int8 is no faster for such small products. Therefore, a CpuImplementation
  // for fp32 makes their operators. It may be a temporary object, because the
  // operators keep no reference to it.
  if (int8_) {
    return std::make_unique<CpuCrossScan>(CpuImplementation(), parameters,
                                          products_);
  }
  return std::make_unique<CpuCrossScan>(*this, parameters, products_);
}

}  // namespace sfmamba::ops
