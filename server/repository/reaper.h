#ifndef SFMAMBA_SERVER_REPOSITORY_REAPER_H_
#define SFMAMBA_SERVER_REPOSITORY_REAPER_H_

#include <malloc.h>

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/repository/model_version.h"
#include "server/threads/worker.h"

namespace sfmamba::repository {

// Frees models on a thread of its own: the last to hold one may be a request
// that ends on a thread of gRPC or of the model itself, and ~Executor waits for
// the model's threads.
//
// Thread-safe. The destructor frees what waits. A model that is released later
// is freed by the thread that releases it.
class Reaper {
 public:
  // Called on the reaper's thread when `model` has been freed; it is an address
  // that means nothing any more but which model that was.
  using Freed = std::function<void(const LoadedModel* model)>;

  // `trim` gives the heap's free memory back to the system; by default it is
  // malloc_trim().
  explicit Reaper(
      Freed freed, std::function<void()> trim = [] { malloc_trim(0); });
  ~Reaper();

  // The model, which goes to the reaper when its last owner releases it.
  std::shared_ptr<LoadedModel> Own(std::unique_ptr<LoadedModel> model);

 private:
  // What the models refer to; it may outlive the reaper.
  struct Grave {
    absl::Mutex mu;
    server::Worker* worker ABSL_GUARDED_BY(mu) = nullptr;  // Until its end.
  };

  const Freed freed_;
  const std::function<void()> trim_;
  const std::shared_ptr<Grave> grave_ = std::make_shared<Grave>();
  server::Worker worker_;  // Last: uses the above.
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_REAPER_H_
