#ifndef SFMAMBA_TESTS_GPU_PASS_FIGURES_H_
#define SFMAMBA_TESTS_GPU_PASS_FIGURES_H_

#include <string>
#include <vector>

#include "kernels/cuda/quantiles.h"
#include "tests/gpu/setting.h"

namespace sfmamba {

// A measurement of a kernel that reads and writes each value once.
struct PassFigure {
  std::string kernel;  // "conv1d + SiLU"
  int tokens, channels;
  double bytes;                   // The bytes read and written.
  kernels::Quantiles warm, cold;  // In microseconds.
};

// Returns one line without the line break.
std::string Json(const PassFigure& figure, const Setting& setting);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_PASS_FIGURES_H_
