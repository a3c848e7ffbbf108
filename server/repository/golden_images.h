#ifndef SFMAMBA_SERVER_REPOSITORY_GOLDEN_IMAGES_H_
#define SFMAMBA_SERVER_REPOSITORY_GOLDEN_IMAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "server/batching/executor.h"
#include "server/repository/golden.h"

namespace sfmamba::repository {

// Returns a few probes with synthetic images of the model's input size. Each
// image has several colours. Every call returns the same images. The probes'
// checks accept every result.
std::vector<batching::Executor::Probe> MadeUpImages(
    const model::ModelConfig& config);

// Runs `model` on a few synthetic images and returns the images with their
// results. Every call uses the same images. If a run fails, returns the error
// of this run. Returns INTERNAL if a result contains a NaN or an infinity.
absl::StatusOr<std::vector<GoldenImage>> AnswerGoldenImages(
    model::VisionModel& model);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_GOLDEN_IMAGES_H_
