#include <cmath>

#include "kernels/scan/selective_scan.h"

namespace sfmamba::kernels {
namespace {

constexpr int kMaxStates = 16;

// Computes the recurrence as selective_scan.h defines it, in arithmetic of type
// Real. Handles one channel of one sequence at a time.
template <typename Real, typename T>
void Scan(const SelectiveScanArgs<T>& args) {
  for (int k = 0; k < args.sequences.count; ++k) {
    for (int d = 0; d < args.channels; ++d) {
      Real h[kMaxStates] = {};
      for (int64_t i = args.sequences.begin(k); i < args.sequences.end(k);
           ++i) {
        const Real u = static_cast<Real>(args.u[i * args.u_stride + d]);
        const Real x = static_cast<Real>(args.dt[i * args.dt_stride + d]) +
                       static_cast<Real>(args.bias[d]);
        const Real delta = x > 20 ? x : std::log1p(std::exp(x));
        const T* B = args.B + i * args.bc_stride;
        const T* C = args.C + i * args.bc_stride;
        Real y = static_cast<Real>(args.D[d]) * u;
        for (int n = 0; n < args.states; ++n) {
          const Real A = static_cast<Real>(args.A[n * args.a_stride + d]);
          h[n] =
              std::exp(delta * A) * h[n] + delta * static_cast<Real>(B[n]) * u;
          y += static_cast<Real>(C[n]) * h[n];
        }
        args.y[i * args.y_stride + d] = static_cast<T>(y);
      }
    }
  }
}

}  // namespace

template <typename T>
void SelectiveScanScalar(const SelectiveScanArgs<T>& args) {
  Scan<float>(args);
}

template <typename T>
void SelectiveScanCpu(const SelectiveScanArgs<T>& args, CpuIsa isa) {
  if (args.states != 1 && args.states != 8 && args.states != 16) {
    return SelectiveScanScalar(args);
  }
  switch (isa) {
    case CpuIsa::kScalar:
      return SelectiveScanScalar(args);
    case CpuIsa::kAvx2:
      return SelectiveScanAvx2(args);
    case CpuIsa::kAvx512:
      return SelectiveScanAvx512(args);
  }
}

void SelectiveScanReference(const SelectiveScanArgs<double>& args) {
  Scan<double>(args);
}

template void SelectiveScanCpu(const SelectiveScanArgs<float>&, CpuIsa);
template void SelectiveScanCpu(const SelectiveScanArgs<BFloat16>&, CpuIsa);

}  // namespace sfmamba::kernels
