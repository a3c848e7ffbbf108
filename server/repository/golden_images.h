#ifndef SFMAMBA_SERVER_REPOSITORY_GOLDEN_IMAGES_H_
#define SFMAMBA_SERVER_REPOSITORY_GOLDEN_IMAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "server/batching/executor.h"
#include "server/repository/golden.h"

namespace sfmamba::repository {

// Returns a few synthetic images of the model's input size. Every call returns
// the same images. Each image has several colours. The checks accept every
// result.
std::vector<batching::Executor::Probe> MadeUpImages(
    const model::ModelConfig& config);

// Returns synthetic images with the results of `model`. Every call returns the
// same images. Returns the model's errors, or INTERNAL if a result is not
// finite.
absl::StatusOr<std::vector<GoldenImage>> AnswerGoldenImages(
    model::VisionModel& model);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_GOLDEN_IMAGES_H_
