#ifndef SFMAMBA_TESTS_MODEL_TESTING_H_
#define SFMAMBA_TESTS_MODEL_TESTING_H_

#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/execution_context.h"
#include "model/ops/implementation.h"
#include "model/prediction_options.h"
#include "model/vision_model.h"
#include "tests/model/implementations.h"

namespace sfmamba::model {

// Returns a small model with every feature of the variants: padded maps,
// several windows, odd depths and layer scale. It is made for images of 96 x 80
// pixels.
ModelConfig SmallModel();
constexpr int kSmallHeight = 96, kSmallWidth = 80;

// Returns a classifier with EfficientNet-Lite0's layers, for images of 160 x
// 160 pixels.
ModelConfig LiteModel();
// Returns a classifier with EfficientNet-Lite0's layers down to stride 32, one
// token stage, and EfficientNet-Lite0's last layers.
ModelConfig LiteStride32Model();

// Returns options that request every possible result from a model for the task.
PredictionOptions AskForAll(VisionTask task);

// Makes a model with deterministic parameters. Ends the process on failure.
std::unique_ptr<VisionModel> MakeModel(const ModelConfig& config,
                                       const ModelOptions& options = {});

// Returns the stage maps of `images` [N, 3, H, W] in fp32. The backbone has
// deterministic parameters.
std::vector<at::Tensor> StageMaps(
    const ModelConfig& config, const at::Tensor& images,
    const ops::Implementation& implementation = Cpu());

// Returns the logits of a backbone and a head with deterministic parameters,
// image after image. `implementation` is used even if the CPU has no
// instructions for its type.
std::vector<float> LogitsOf(const ModelConfig& config, const at::Tensor& images,
                            const ops::Implementation& implementation);

// Returns the answers to normalized `images` [N, 3, H, W].
absl::StatusOr<std::vector<Result>> RunModel(ExecutionContext& context,
                                             const at::Tensor& images);

// Runs the model in a new context.
absl::StatusOr<std::vector<Result>> RunModel(VisionModel& model,
                                             const at::Tensor& images);

// Return the logits, image after image. End the process if there is an error.
std::vector<float> Logits(ExecutionContext& context, const at::Tensor& images);
std::vector<float> Logits(VisionModel& model, const at::Tensor& images);

// Return the largest absolute difference. Both arguments have the same size.
double LargestDifference(const std::vector<float>& a,
                         const std::vector<float>& b);
double LargestDifference(const at::Tensor& a, const at::Tensor& b);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_TESTING_H_
