#ifndef SFMAMBA_SERVER_REPOSITORY_GOLDEN_IMAGES_H_
#define SFMAMBA_SERVER_REPOSITORY_GOLDEN_IMAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "server/batching/executor.h"
#include "server/repository/golden.h"

namespace sfmamba::repository {

// A few made-up images of the input's size, always the same and none of them
// flat, without a check.
std::vector<batching::Executor::Probe> MadeUpImages(
    const model::ModelConfig& config);

// Made-up images, always the same, with what `model` answers. Its errors;
// INTERNAL if an answer is not finite.
absl::StatusOr<std::vector<GoldenImage>> AnswerGoldenImages(
    model::VisionModel& model);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_GOLDEN_IMAGES_H_
