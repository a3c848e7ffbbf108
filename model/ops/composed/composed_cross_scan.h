#ifndef SFMAMBA_MODEL_OPS_COMPOSED_COMPOSED_CROSS_SCAN_H_
#define SFMAMBA_MODEL_OPS_COMPOSED_COMPOSED_CROSS_SCAN_H_

#include <array>
#include <memory>

#include "model/ops/implementation.h"

namespace sfmamba::ops {

// Returns parameters of the same results with `states` states, at least as
// many as there are. The additional ones stay 0.
CrossScanParameters WithStates(const CrossScanParameters& parameters,
                               int64_t states);

// A cross scan step by step: an implementation's projections and scans of
// copies of the map, one for each direction, and its LayerNorm.
class ComposedCrossScan : public CrossScanOp {
 public:
  ComposedCrossScan(const Implementation& implementation,
                    const CrossScanParameters& parameters);

  at::Tensor Forward(const at::Tensor& u) const override;

 private:
  struct Direction {
    std::unique_ptr<const ScanProjectionOp> projection;
    std::unique_ptr<const SelectiveScanOp> scan;
  };

  std::array<Direction, 4> directions_;
  std::unique_ptr<const LayerNormOp> norm_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPOSED_COMPOSED_CROSS_SCAN_H_
