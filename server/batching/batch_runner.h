#ifndef SFMAMBA_SERVER_BATCHING_BATCH_RUNNER_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_RUNNER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "model/execution_context.h"
#include "model/result.h"

namespace sfmamba::batching {

// How many images run together, for each image size. A size has no limit until
// a batch of it needs more memory than the device has. Limits never rise again.
//
// Thread-safe, so that all contexts of a model share one.
class BatchLimits {
 public:
  using Size = std::pair<int, int>;  // An image's height and width in pixels.

  // Returns how many of `wanted` images may run together.
  size_t Allowed(const Size& size, size_t wanted) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Lowers the limit to half of `images`, at least two, which were too many.
  void Halve(const Size& size, size_t images) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::map<Size, size_t> limits_ ABSL_GUARDED_BY(mu_);
};

// Whether no value of the result is infinite or not a number.
bool IsFinite(const model::Result& result);

// Runs batches on one context, so that an image that makes a batch fail fails
// alone, and a batch that does not fit into memory runs in parts.
//
// If there is too little memory, the batch is halved and the limit remembered.
// If a run fails otherwise, its halves are run, and the halves of a half that
// fails again, until the image at fault is alone. If both halves fail, no
// single image is at fault, and all images of both get the error.
//
// Must be made, used and destroyed by the same thread, like its context.
class BatchRunner {
 public:
  // How a batch has been run so far.
  struct Progress {
    int images = 0;         // The images that ran together with this one.
    int padded_images = 0;  // The same, including padding.
    int padding = 0;        // All padding that the batch has needed.
  };
  // Receives the result of image `image`, or the model's error.
  using Answer =
      absl::FunctionRef<void(size_t image, absl::StatusOr<model::Result> result,
                             const Progress& progress)>;
  // Returns UNAVAILABLE once the device has failed for good.
  using CheckDevice = std::function<absl::Status()>;

  // `limits` is shared by the runners of a model and must outlive them.
  BatchRunner(std::unique_ptr<model::ExecutionContext> context,
              BatchLimits* limits, CheckDevice check_device);

  // Prepares the context for batches of up to `max_images` images, of `size` if
  // the model is a classifier, or for as many as memory suffices for. Returns
  // the context's error.
  absl::Status Prepare(const BatchLimits::Size& size, int max_images);

  // Returns how long a batch of `images` black uint8 images of `size` takes, or
  // the context's error. Only for sizes that the context is prepared for. Calls
  // `result` for each image.
  absl::StatusOr<absl::Duration> Measure(
      const BatchLimits::Size& size, int images,
      absl::FunctionRef<void(const model::Result&)> result);

  // Runs images that all have the padded size `size`. Calls `answer` exactly
  // once for each image, as soon as it is done.
  void Run(const BatchLimits::Size& size,
           absl::Span<const model::ModelInput> images, Answer answer);

 private:
  const std::unique_ptr<model::ExecutionContext> context_;
  BatchLimits& limits_;
  const CheckDevice check_device_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_RUNNER_H_
