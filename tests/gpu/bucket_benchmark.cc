#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/base/bfloat16.h"
#include "kernels/cuda/gpu_timer_cuda.h"
#include "tests/gpu/benchmark.h"
#include "tests/gpu/random_values.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/scan/bucket_scan_cuda.h"

namespace sfmamba {
namespace {

constexpr char kBucketScan[] =
    "our reproduction of the paper's bucketed block scan";

// The inputs of a scan in channel-major order. The same random values are used
// for each number of rows (B1), but they form other sequences. Only times are
// measured, so the results need not be equal.
class BucketInputs {
 public:
  BucketInputs(int64_t tokens, int channels, int states)
      : u_(RandomValues<kernels::BFloat16>(tokens * channels)),
        dt_(RandomValues<kernels::BFloat16>(tokens * channels, 0, 0.5f)),
        bc_(RandomValues<kernels::BFloat16>(tokens * states)),
        y_(tokens * channels),
        A_(Decays(states, channels)),
        D_(RandomValues<float>(channels)),
        bias_(RandomValues<float>(channels, -4.6f)) {}

  kernels::BucketScanArgs<kernels::BFloat16> Args(
      const tuning::ScanShape& shape, int rows) const {
    kernels::BucketScanArgs<kernels::BFloat16> args{};
    args.rows = rows;
    args.sequences = shape.sequences / rows;
    args.length = shape.length;
    args.channels = shape.channels;
    args.states = shape.states;
    args.u = u_.data();
    args.dt = dt_.data();
    args.B = bc_.data();
    args.C = bc_.data();
    args.y = y_.data();
    args.A = A_.data();
    args.D = D_.data();
    args.bias = bias_.data();
    return args;
  }

 private:
  static std::vector<float> Decays(int states, int channels) {
    std::vector<float> values =
        RandomValues<float>(size_t{1} * states * channels, 0, 0.3f);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = -static_cast<float>(i / channels + 1) * std::exp(values[i]);
    }
    return values;
  }

  const kernels::DeviceArray<kernels::BFloat16> u_, dt_, bc_, y_;
  const kernels::DeviceArray<float> A_, D_, bias_;
};

}  // namespace

absl::Status MeasureBucketScans(const std::vector<ScanCase>& cases,
                                const Setting& setting,
                                const WriteLine& write) {
  const auto timer = kernels::GpuTimer::Create();
  if (!timer.ok()) return timer.status();
  for (const ScanCase& scan : cases) {
    if (scan.group != ScanCase::kPaper) continue;
    const tuning::ScanShape& shape = scan.shape;
    const BucketInputs inputs(scan.tokens(), shape.channels, shape.states);
    for (int rows = 1; rows <= shape.sequences; rows *= 2) {
      const kernels::BucketScanArgs<kernels::BFloat16> args =
          inputs.Args(shape, rows);
      const auto enqueue = [&](kernels::CudaStream stream) {
        return kernels::BucketScanCuda(args, stream);
      };
      const auto warm = (*timer)->Warm(enqueue, {});
      if (!warm.ok()) return warm.status();
      const auto cold = (*timer)->Cold(enqueue, {});
      if (!cold.ok()) return cold.status();
      const kernels::ScanBucket bucket =
          kernels::BucketOf(args.sequences * args.length);
      const ScanFigure figure = {
          scan, kBucketScan, absl::StrCat(bucket.threads, " x ", bucket.items),
          rows, *warm,       *cold};
      write(Json(figure, setting));
    }
  }
  return absl::OkStatus();
}

}  // namespace sfmamba
