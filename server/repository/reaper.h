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

// Frees models on its own thread. The last owner of a model may be a request
// that ends on a gRPC thread or on a thread of the model's executor. Such a
// thread must not run ~Executor, because ~Executor waits for the executor's
// threads.
//
// Thread-safe. The destructor frees the models that wait to be freed.
// Afterwards a model is freed by the thread of its last owner.
class Reaper {
 public:
  // Called on the reaper's thread after `model` was freed. The pointer only
  // identifies the model and must not be dereferenced.
  using Freed = std::function<void(const LoadedModel* model)>;

  // `trim` gives free heap memory back to the operating system. The reaper
  // calls it each time it has freed a model. The default is malloc_trim().
  explicit Reaper(
      Freed freed, std::function<void()> trim = [] { malloc_trim(0); });
  ~Reaper();

  // Returns a pointer to the model. When the last owner releases the pointer,
  // the reaper frees the model.
  std::shared_ptr<LoadedModel> Own(std::unique_ptr<LoadedModel> model);

 private:
  // The part of the reaper that the deleters of the models use. A deleter may
  // outlive the reaper.
  struct Grave {
    absl::Mutex mu;
    // Null after the destructor of the reaper has started.
    server::Worker* worker ABSL_GUARDED_BY(mu) = nullptr;
  };

  const Freed freed_;
  const std::function<void()> trim_;
  const std::shared_ptr<Grave> grave_ = std::make_shared<Grave>();
  // This member is last, because its thread uses the members above.
  server::Worker worker_;
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_REAPER_H_
