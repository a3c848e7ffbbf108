#ifndef SFMAMBA_TESTS_TESTING_FAKE_CONTEXT_H_
#define SFMAMBA_TESTS_TESTING_FAKE_CONTEXT_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/execution_context.h"
#include "model/result.h"

namespace sfmamba::model {

// A context of a fake model. It computes each batch with a function, all images
// at once and without padding.
class FakeContext : public ExecutionContext {
 public:
  using Compute = std::function<absl::StatusOr<std::vector<Result>>(
      absl::Span<const ModelInput> images)>;

  explicit FakeContext(Compute compute) : compute_(std::move(compute)) {}

  absl::Status Run(absl::Span<const ModelInput> images, RunInfo* info,
                   Done done) override {
    absl::StatusOr<std::vector<Result>> results = compute_(images);
    if (!results.ok()) return results.status();
    info->padded_images = static_cast<int>(images.size());
    for (Result& result : *results) done(std::move(result));
    return absl::OkStatus();
  }

 private:
  const Compute compute_;
};

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_TESTING_FAKE_CONTEXT_H_
