#ifndef SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_
#define SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_

#include <string>
#include <vector>

#include "model/config.h"
#include "model/tuning/scan_shape.h"

namespace sfmamba::model {

// What limits the speed of a launch.
enum class LaunchKind {
  kGemm,         // A library's matrix product.
  kConvolution,  // A library's convolution.
  kAttention,    // A library's attention.
  kScan,
  kStem,     // Makes the first map of pixels, fp32.
  kOnePass,  // Reads and writes memory once.
};

// One launch of a kernel in a run of the network.
struct Launch {
  LaunchKind kind = LaunchKind::kOnePass;
  std::string group;       // Its purpose, such as "LayerNorm".
  double flops = 0;        // A multiply-add counts as two.
  double bytes = 0;        // Read and written, once per tensor.
  int channels = 0;        // Channels of a convolution's input.
  double specials = 0;     // A scan's exponentials, logarithms and divisions.
  tuning::ScanShape scan;  // Selects a scan's plan.
};

// Returns the launches of a classifier in one run over `images` pictures of its
// size, from pixels to answers, in order. They are recorded from the code that
// runs on a GPU, with tensors that have shapes but no values.
std::vector<Launch> LaunchesOf(const ModelConfig& config, int images);

// Returns the launches of a model's backbone in one run over `images` pictures
// of this size, in order. Includes this project's kernels and libraries'
// kernels, but not libtorch's own operators. They are recorded as in
// LaunchesOf().
std::vector<Launch> BackboneLaunches(const ModelConfig& config, int images,
                                     int height, int width);

// Returns the shapes of the backbone's scans in one run over `images` pictures
// of this size, in order. They are recorded as in LaunchesOf().
std::vector<tuning::ScanShape> ScansOf(const ModelConfig& config, int images,
                                       int height, int width);

// Returns the estimated microseconds on an H200 with optimistic rates: memory
// 3.65 TB/s, products 600 TFLOP/s, convolutions 280 to 550 TFLOP/s, attention's
// memory 1.2 TB/s. The scan takes 1.6 times the bound of its special functions,
// and the stem 1.6 times the bound of fp32. A gap of 1.2 us precedes each
// launch. This is an estimate and no measurement.
double ModelledMicroseconds(const Launch& launch);

// Returns the table of one model, with a row per group and the sum.
std::string LaunchTable(const std::vector<Launch>& launches);

// Returns the sum of the modelled times of all launches, in milliseconds.
double ModelledMilliseconds(const std::vector<Launch>& launches);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_
