#ifndef SFMAMBA_TESTS_TESTING_LINE_MASKS_H_
#define SFMAMBA_TESTS_TESTING_LINE_MASKS_H_

#include <utility>

#include "base/mask.h"

namespace sfmamba {

// A mask with known pixels.
class PixelMask : public base::LineMask {
 public:
  explicit PixelMask(base::Mask mask) : mask_(std::move(mask)) {}

  Bounds bounds() const override {
    return {mask_.left, mask_.top, mask_.width, mask_.height};
  }
  void AddRows(int begin, int end, base::LineRuns* runs) const override;
  void AddColumns(int begin, int end, base::LineRuns* runs) const override;

 private:
  const base::Mask mask_;
};

// Returns the pixels within the mask's bounds, read by rows.
base::Mask PixelsOf(const base::LineMask& mask);

// Returns the pixels within the mask's bounds, read by columns.
base::Mask PixelsByColumns(const base::LineMask& mask);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_LINE_MASKS_H_
