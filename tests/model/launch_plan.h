#ifndef SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_
#define SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_

#include <string>
#include <vector>

#include "model/config.h"
#include "model/tuning/scan_shape.h"

namespace sfmamba::model {

// The kind of work that a launch does. It determines what limits the launch's
// speed.
enum class LaunchKind {
  kGemm,         // A library's matrix product.
  kConvolution,  // A library's convolution.
  kAttention,    // A library's attention.
  kScan,
  kStem,     // Makes the first map from pixels, in fp32.
  kOnePass,  // Reads and writes memory once.
};

// One launch of a kernel in a run of the network.
struct Launch {
  LaunchKind kind = LaunchKind::kOnePass;
  std::string group;       // Its purpose, such as "LayerNorm".
  double flops = 0;        // A multiply-add counts as two.
  double bytes = 0;        // Bytes read and written, once per tensor.
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

// Returns the estimated time of a launch on an H200, in microseconds. This is
// the longer of its memory time and its arithmetic time, plus a gap of 1.2 us
// before the launch. Both times are computed from optimistic rates and are not
// measured:
// - All launches except attention read and write memory at 3.65 TB/s.
// - Attention reads and writes memory at 1.2 TB/s. It has no arithmetic time.
// - Matrix products compute 600 TFLOP/s.
// - Convolutions compute 280 to 550 TFLOP/s, depending on their channels.
// - A scan needs 1.6 times as long as its special functions would need at the
//   GPU's peak rate. Special functions are exponentials, logarithms and
//   divisions.
// - The stem needs 1.6 times as long as its operations would need at the GPU's
//   peak rate for fp32.
double ModelledMicroseconds(const Launch& launch);

// Returns the table of one model, with a row per group and the sum.
std::string LaunchTable(const std::vector<Launch>& launches);

// Returns the sum of the modelled times of all launches, in milliseconds.
double ModelledMilliseconds(const std::vector<Launch>& launches);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_LAUNCH_PLAN_H_
