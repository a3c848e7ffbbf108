#ifndef SFMAMBA_SERVER_REPOSITORY_GOLDEN_H_
#define SFMAMBA_SERVER_REPOSITORY_GOLDEN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/result.h"
#include "server/batching/executor.h"
#include "server/repository/version_files.h"

namespace sfmamba::repository {

// An image and the model's stored result for this image, recorded when the
// model was known to be correct.
struct GoldenImage {
  int height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3] RGB.
  model::Result result;
};

// <version>/golden/golden.safetensors stores these tensors for image n, counted
// from 0:
//   image.n   U8 [height, width, 3]
// For a classifier:
//   logits.n  F32 [classes]
// For a detector, in pixels of the image:
//   boxes.n   F32 [detections, 4] as x1, y1, x2, y2
//   scores.n  F32 [detections]
//   classes.n I32 [detections]
// For a segmenter:
//   labels.n  U16 [height, width]

// Returns the golden images of a version as probes, which run and are checked
// at each load. Returns none if the file does not exist. Returns
// INVALID_ARGUMENT with the tensor that is missing or has the wrong shape. The
// errors contain no path.
absl::StatusOr<std::vector<batching::Executor::Probe>> ReadGolden(
    const VersionPath& version, const model::ModelConfig& config);

// Returns a black image of the model's input size. The probe's check returns
// INTERNAL if the model's output is not finite.
batching::Executor::Probe BlackProbe(const model::ModelConfig& config);

// Writes the golden file. Creates its folder if necessary.
absl::Status WriteGolden(const std::string& version,
                         const std::vector<GoldenImage>& images);

// Returns FAILED_PRECONDITION unless `got` equals `expected`. These differences
// are allowed, because precisions and devices may cause them:
// - Logits may differ by a twentieth of their range.
// - Each expected detection of score 0.5 or more needs a match. A match has the
//   same class, an overlap (IoU) of at least 0.8, and a score that differs by
//   at most 0.1. Each detection found with score 0.6 or more needs a match too.
// - At least 98 % of a map's pixels must be equal.
absl::Status CheckResult(const model::Result& got,
                         const model::Result& expected);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_GOLDEN_H_
