#ifndef SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_
#define SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_

#include <string>
#include <vector>

#include "model/config.h"
#include "model/tuning/scan_shape.h"

namespace sfmamba::model {

// What limits a launch.
enum class LaunchKind {
  kGemm,         // Matrix products: a library's.
  kConvolution,  // A library's too.
  kAttention,    // Likewise.
  kScan,
  kStem,     // From pixels to the first map, on the fp32 units.
  kOnePass,  // Everything that reads and writes memory once.
};

// One kernel that a pass of the network launches.
struct Launch {
  LaunchKind kind = LaunchKind::kOnePass;
  std::string group;       // What it does: "LayerNorm".
  double flops = 0;        // A multiply-add is two.
  double bytes = 0;        // Read and written, each tensor once.
  int channels = 0;        // Channels of a convolution's input.
  double specials = 0;     // A scan's exponentials, logarithms and divisions.
  tuning::ScanShape scan;  // A scan's shape, by which its plan is chosen.
};

// The launches of one pass of a classifier over `images` pictures of its size,
// from pixels to answers, in order. They are recorded from the very code that
// a GPU runs, on tensors that have shapes but no values.
std::vector<Launch> LaunchesOf(const ModelConfig& config, int images);

// The launches of our own kernels and of libraries in one pass of a model's
// backbone over `images` pictures of this size, in order, without libtorch's
// own operators. They are recorded likewise.
std::vector<Launch> BackboneLaunches(const ModelConfig& config, int images,
                                     int height, int width);

// The shapes of the scans of one pass of a model's backbone over `images`
// pictures of this size, in order. They are recorded likewise.
std::vector<tuning::ScanShape> ScansOf(const ModelConfig& config, int images,
                                       int height, int width);

// Microseconds on an H200 at optimistic rates: memory 3.65 TB/s, products 600
// and convolutions 280 to 550 TFLOP/s, attention's memory 1.2 TB/s, the scan
// and the stem 1.6 times the bound of special functions and of fp32, 1.2 us of
// gap before each launch. A model, not a measurement.
double ModelledMicroseconds(const Launch& launch);

// The table of one model: a row a group, and the sum.
std::string LaunchTable(const std::vector<Launch>& launches);

// The sum alone, in milliseconds.
double ModelledMilliseconds(const std::vector<Launch>& launches);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_
