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

// A small model with everything in it that the variants have: padded maps,
// several windows, odd depths, layer scale. Made for images of 96 x 80.
ModelConfig SmallModel();
constexpr int kSmallHeight = 96, kSmallWidth = 80;

// A classifier on EfficientNet-Lite0's layers, made for images of 160 x 160.
ModelConfig LiteModel();
// A classifier on EfficientNet-Lite0's layers down to stride 32, one token
// stage and EfficientNet-Lite0's last layers.
ModelConfig LiteStride32Model();

// Options that ask a model of the task for all that it can compute.
PredictionOptions AskForAll(VisionTask task);

// With deterministic parameters. Dies if that fails.
std::unique_ptr<VisionModel> MakeModel(const ModelConfig& config,
                                       const ModelOptions& options = {});

// The stage maps of `images` [N, 3, H, W], of a backbone with deterministic
// parameters, in fp32.
std::vector<at::Tensor> StageMaps(
    const ModelConfig& config, const at::Tensor& images,
    const ops::Implementation& implementation = Cpu());

// The logits of a backbone and a head with deterministic parameters, image
// after image, whatever the processor computes natively.
std::vector<float> LogitsOf(const ModelConfig& config, const at::Tensor& images,
                            const ops::Implementation& implementation);

// The answers to `images` [N, 3, H, W], normalised.
absl::StatusOr<std::vector<Result>> RunModel(ExecutionContext& context,
                                             const at::Tensor& images);

// Runs the model in a new context.
absl::StatusOr<std::vector<Result>> RunModel(VisionModel& model,
                                             const at::Tensor& images);

// Return the logits, image after image. Die on an error.
std::vector<float> Logits(ExecutionContext& context, const at::Tensor& images);
std::vector<float> Logits(VisionModel& model, const at::Tensor& images);

// The largest absolute difference; the vectors are of one length.
double LargestDifference(const std::vector<float>& a,
                         const std::vector<float>& b);
double LargestDifference(const at::Tensor& a, const at::Tensor& b);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_TESTING_H_
