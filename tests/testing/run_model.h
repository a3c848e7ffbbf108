#ifndef SFMAMBA_TESTS_TESTING_RUN_MODEL_H_
#define SFMAMBA_TESTS_TESTING_RUN_MODEL_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/execution_context.h"
#include "model/result.h"
#include "model/vision_model.h"

namespace sfmamba::model {

// Runs one batch and returns one result per image, in order. Fills `info`
// unless it is null.
absl::StatusOr<std::vector<Result>> RunBatch(
    ExecutionContext& context, absl::Span<const ModelInput> images,
    RunInfo* info = nullptr);

// Runs a batch in a new context of the model.
absl::StatusOr<std::vector<Result>> RunBatch(
    VisionModel& model, absl::Span<const ModelInput> images,
    RunInfo* info = nullptr);

// Makes the model's context `index`. Throws an exception on failure, which
// fails the test.
std::unique_ptr<ExecutionContext> MakeContext(VisionModel& model,
                                              int index = 0);

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_TESTING_RUN_MODEL_H_
