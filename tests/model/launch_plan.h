#ifndef SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_
#define SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_

#include <string>
#include <vector>

#include "model/config.h"
#include "model/tuning/scan_shape.h"

namespace sfmamba::model {

// The resource that limits a launch.
enum class LaunchKind {
  kGemm,         // Matrix products of a library.
  kConvolution,  // Convolutions of a library.
  kAttention,    // Attention of a library.
  kScan,
  kStem,     // From pixels to the first map, in fp32.
  kOnePass,  // Reads and writes memory once.
};

// One kernel launched in a pass of the network.
struct Launch {
  LaunchKind kind = LaunchKind::kOnePass;
  std::string group;       // Its purpose, such as "LayerNorm".
  double flops = 0;        // A multiply-add counts as two.
  double bytes = 0;        // Read and written, once per tensor.
  int channels = 0;        // Channels of a convolution's input.
  double specials = 0;     // A scan's exponentials, logarithms and divisions.
  tuning::ScanShape scan;  // A scan's shape, which selects its plan.
};

// Returns the launches of one pass of a classifier over `images` pictures of
// its size, from pixels to answers, in order. They are recorded from the code
// that runs on a GPU, on tensors with shapes but no values.
std::vector<Launch> LaunchesOf(const ModelConfig& config, int images);

// Returns the launches of this project's kernels and of libraries in one pass
// of a model's backbone over `images` pictures of this size, in order. Excludes
// libtorch's own operators. They are recorded in the same way.
std::vector<Launch> BackboneLaunches(const ModelConfig& config, int images,
                                     int height, int width);

// Returns the shapes of the scans in one pass of a model's backbone over
// `images` pictures of this size, in order. They are recorded in the same way.
std::vector<tuning::ScanShape> ScansOf(const ModelConfig& config, int images,
                                       int height, int width);

// Returns the modelled microseconds on an H200 at optimistic rates: memory 3.65
// TB/s, products 600 TFLOP/s, convolutions 280 to 550 TFLOP/s, attention's
// memory 1.2 TB/s. The scan and the stem take 1.6 times the bound of special
// functions and of fp32. Each launch has a gap of 1.2 us before it. This is a
// model, not a measurement.
double ModelledMicroseconds(const Launch& launch);

// Returns the table of one model, with a row per group and the sum.
std::string LaunchTable(const std::vector<Launch>& launches);

// Returns only the sum, in milliseconds.
double ModelledMilliseconds(const std::vector<Launch>& launches);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_
