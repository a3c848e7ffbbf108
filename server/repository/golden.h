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

// A test image and the model's result for this image. The result was recorded
// when the model was known to be correct.
struct GoldenImage {
  int height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3] RGB.
  model::Result result;
};

// The file <version>/golden/golden.safetensors stores these tensors for each
// image. n is the number of the image and starts at 0:
//   image.n   U8 [height, width, 3]
// For a classifier:
//   logits.n  F32 [classes]
// For a detector, whose boxes are in pixels of the image:
//   boxes.n   F32 [detections, 4] as x1, y1, x2, y2
//   scores.n  F32 [detections]
//   classes.n I32 [detections]
// For a segmenter:
//   labels.n  U16 [height, width]

// Returns the golden images (images with recorded results) of a version as
// probes. A probe is an image with a check of the model's result. Each load of
// the version runs the probes. Returns an empty list if there is no golden
// file. Returns INVALID_ARGUMENT if the file is invalid, for example if a
// tensor is missing. The error names the tensor but contains no path.
absl::StatusOr<std::vector<batching::Executor::Probe>> ReadGolden(
    const VersionPath& version, const model::ModelConfig& config);

// Returns a probe with a black image of the model's input size. The probe's
// check returns INTERNAL if the model's result contains a NaN or an infinity.
batching::Executor::Probe BlackProbe(const model::ModelConfig& config);

// Writes the golden file into `version`, the folder of a version. Creates the
// file's folder if necessary.
absl::Status WriteGolden(const std::string& version,
                         const std::vector<GoldenImage>& images);

// Returns FAILED_PRECONDITION if `got` differs too much from `expected`. Small
// differences are allowed, because precisions and devices may cause them:
// - Each logit may differ by 5 % of the range of the expected logits.
// - Each expected detection with a score of 0.5 or more must match a detection
//   in `got`. Two detections match if their classes are equal, their boxes
//   overlap by at least 0.8 (IoU) and their scores differ by at most 0.1.
// - Each detection in `got` with a score of 0.6 or more must match an expected
//   detection.
// - At least 98 % of the pixels of a class map must have the expected class.
absl::Status CheckResult(const model::Result& got,
                         const model::Result& expected);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_GOLDEN_H_
