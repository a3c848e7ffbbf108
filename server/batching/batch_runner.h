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

// Limits how many images of one size run together. A size has no limit until a
// batch of images of this size needs more memory than the device has. A limit
// never rises again.
//
// Thread-safe, because all contexts of a model share one object.
class BatchLimits {
 public:
  using Size = std::pair<int, int>;  // An image's height and width in pixels.

  // Returns how many of `wanted` images may run together.
  size_t Allowed(const Size& size, size_t wanted) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Lowers the limit to half of `images`, because this number of images did not
  // fit into memory. `images` must be at least two.
  void Halve(const Size& size, size_t images) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::map<Size, size_t> limits_ ABSL_GUARDED_BY(mu_);
};

// Returns true if all values of the result are finite.
bool IsFinite(const model::Result& result);

// Runs batches on one execution context of a model. If one image makes its
// batch fail, only this image gets an error. A batch that does not fit into
// memory runs in parts.
//
// If the device has too little memory, the runner halves the batch and
// remembers the limit. If the device has failed permanently, all images that
// have no result yet get UNAVAILABLE. After any other failure, the runner runs
// both halves of the batch separately:
// - If only one half fails, the runner halves it again, until the failing image
//   is alone.
// - If both halves fail, the runner assumes that no single image is the cause.
//   All images of both halves that have no result yet get the error.
//
// One thread must create, use and destroy both the runner and its execution
// context.
class BatchRunner {
 public:
  // The progress of a batch.
  struct Progress {
    int images = 0;         // The number of images that ran together.
    int padded_images = 0;  // `images` plus padding images.
    int padding = 0;        // The batch's padding images so far.
  };
  // Receives the result of the image with index `image`, or the model's error.
  using Answer =
      absl::FunctionRef<void(size_t image, absl::StatusOr<model::Result> result,
                             const Progress& progress)>;
  // Returns UNAVAILABLE if the device has failed permanently. If not, returns
  // OK.
  using CheckDevice = std::function<absl::Status()>;

  // `limits` is shared by all runners of a model and must outlive the runners.
  BatchRunner(std::unique_ptr<model::ExecutionContext> context,
              BatchLimits* limits, CheckDevice check_device);

  // Prepares the context for batches of up to `max_images` images. If the
  // memory does not suffice, lowers the limit of the image size `size` and
  // prepares the context for fewer images. Returns the error of the context, or
  // OK.
  absl::Status Prepare(const BatchLimits::Size& size, int max_images);

  // Measures a batch of `images` black uint8 images of `size`. Returns the
  // batch's duration or the context's error. The context must be prepared for
  // the size. Calls `result` with each image's result.
  absl::StatusOr<absl::Duration> Measure(
      const BatchLimits::Size& size, int images,
      absl::FunctionRef<void(const model::Result&)> result);

  // Runs images that all have the padded size `size`. Calls `answer` exactly
  // once for each image, as soon as the image is done.
  void Run(const BatchLimits::Size& size,
           absl::Span<const model::ModelInput> images, Answer answer);

 private:
  const std::unique_ptr<model::ExecutionContext> context_;
  BatchLimits& limits_;
  const CheckDevice check_device_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_RUNNER_H_
