#ifndef SFMAMBA_SERVER_REPOSITORY_LOAD_LANES_H_
#define SFMAMBA_SERVER_REPOSITORY_LOAD_LANES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/threads/worker.h"

namespace sfmamba::repository {

// Threads that load models at the same time, so that one model that takes
// long does not hold up the others. The jobs of a model run one after the
// other, in their order.
//
// Thread-safe. The destructor waits for the jobs that run; the others are told
// that they will not be done.
class LoadLanes {
 public:
  static constexpr int kLanes = 2;

  // `background` is the low-priority thread of the lane that runs the job. No
  // other job uses it meanwhile. `stopped` is as in Worker::Job.
  using Job = std::function<void(server::Worker& background, bool stopped)>;

  // `most_waiting`: see Push(). `background_starts` is called first of all on
  // each thread of low priority.
  LoadLanes(size_t most_waiting, std::function<void()> background_starts);

  // Has a thread do a job for the model `id`. False if too many jobs wait or
  // the lanes have been stopped; the job is dropped then.
  bool Push(const std::string& id, Job job) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a job of the model runs or waits.
  bool IsBusy(const std::string& id) const ABSL_LOCKS_EXCLUDED(mu_);

  // Jobs that begin from now on get `stopped`.
  void Stop();

 private:
  struct Lane {
    explicit Lane(std::function<void()> background_starts);

    int jobs = 0;  // That run or wait.
    server::Worker background;
    server::Worker loader;  // Last: its jobs use the above.
  };
  struct Model {
    Lane* lane = nullptr;
    int jobs = 0;  // That run or wait.
  };

  // The lane with the fewest jobs.
  Lane& Emptiest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Begins() ABSL_LOCKS_EXCLUDED(mu_);  // A job of any model.
  void Ended(const std::string& id) ABSL_LOCKS_EXCLUDED(mu_);

  const size_t most_waiting_;
  mutable absl::Mutex mu_;
  size_t waiting_ ABSL_GUARDED_BY(mu_) = 0;                   // Jobs.
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mu_);  // With jobs.
  // Last: their threads use the above. Each lane's `jobs` is guarded by mu_.
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_LOAD_LANES_H_
