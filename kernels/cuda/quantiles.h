#ifndef SFMAMBA_KERNELS_CUDA_QUANTILES_H_
#define SFMAMBA_KERNELS_CUDA_QUANTILES_H_

#include <algorithm>
#include <cmath>
#include <vector>

namespace sfmamba::kernels {

// The 10th percentile, the median and the 90th percentile of a series.
struct Quantiles {
  double p10 = 0, median = 0, p90 = 0;

  // Returns the quantiles of `values`, which must not be empty. Each quantile
  // is the value of the nearest rank, without interpolation.
  static Quantiles Of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
      return values[std::lround(share * (values.size() - 1))];
    };
    return {at(0.1), at(0.5), at(0.9)};
  }
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_QUANTILES_H_
