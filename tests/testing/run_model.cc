#include "tests/testing/run_model.h"

#include <utility>

namespace sfmamba::model {

absl::StatusOr<std::vector<Result>> RunBatch(
    ExecutionContext& context, absl::Span<const ModelInput> images,
    RunInfo* info) {
  RunInfo own;
  std::vector<Result> results;
  const absl::Status status =
      context.Run(images, info != nullptr ? info : &own,
                  [&](Result result) { results.push_back(std::move(result)); });
  if (!status.ok()) return status;
  return results;
}

absl::StatusOr<std::vector<Result>> RunBatch(
    VisionModel& model, absl::Span<const ModelInput> images, RunInfo* info) {
  const auto context = model.MakeContext(/*index=*/0);
  if (!context.ok()) return context.status();
  return RunBatch(**context, images, info);
}

std::unique_ptr<ExecutionContext> MakeContext(VisionModel& model, int index) {
  return model.MakeContext(index).value();  // value() throws if the call fails.
}

}  // namespace sfmamba::model
