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

// An image and what a model answered when it was known to be right.
struct GoldenImage {
  int height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3] RGB.
  model::Result result;
};

// <version>/golden/golden.safetensors holds for the nth image, from 0,
//   image.n   U8 [height, width, 3]
// and of a classifier
//   logits.n  F32 [classes],
// of a detector, in pixels of the image,
//   boxes.n   F32 [detections, 4] as x1, y1, x2, y2,
//   scores.n  F32 [detections],
//   classes.n I32 [detections],
// of a segmenter
//   labels.n  U16 [height, width].

// The images of a version's folder as what a load runs and checks; none if
// there is no such file. INVALID_ARGUMENT names the tensor that is missing or
// has another shape; no path.
absl::StatusOr<std::vector<batching::Executor::Probe>> ReadGolden(
    const VersionPath& version, const model::ModelConfig& config);

// A black image of the input's size, whose values must be finite: what is known
// of every model. INTERNAL if they are not.
batching::Executor::Probe BlackProbe(const model::ModelConfig& config);

// Writes the file, and its folder if that is missing.
absl::Status WriteGolden(const std::string& version,
                         const std::vector<GoldenImage>& images);

// FAILED_PRECONDITION unless `got` equals `expected` within what precisions and
// devices may change: logits differ by at most a twentieth of their range; a
// detection of score 0.5 or more has one of its class that overlaps it by four
// fifths and whose score differs by at most 0.1, and there are no others of
// 0.6; 98 % of a map's pixels are equal.
absl::Status CheckResult(const model::Result& got,
                         const model::Result& expected);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_GOLDEN_H_
