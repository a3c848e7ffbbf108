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

// Runs jobs that load models. Several lanes, each with its own threads, run
// jobs at the same time, so that one slow model does not delay all others. Jobs
// of one model run one after another, in the order of Push().
//
// Thread-safe. The destructor waits for running jobs. It then runs each waiting
// job with `stopped` set to true, see Worker::Job.
class LoadLanes {
 public:
  static constexpr int kLanes = 2;

  // A job may use the low-priority thread `background`. No other job uses this
  // thread at the same time. If `stopped` is true, the job must not do its
  // work. It should only report that the work was not done, see Worker::Job.
  using Job = std::function<void(server::Worker& background, bool stopped)>;

  // `most_waiting` is the maximum number of waiting jobs. `background_starts`
  // is called on each low-priority thread before any job.
  LoadLanes(size_t most_waiting, std::function<void()> background_starts);

  // Queues a job for the model `id`. Returns false and drops the job if too
  // many jobs wait or the lanes are stopping.
  bool Push(const std::string& id, Job job) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if a job of the model `id` runs or waits.
  bool IsBusy(const std::string& id) const ABSL_LOCKS_EXCLUDED(mu_);

  // Jobs that start after this call have `stopped` set to true.
  void Stop();

 private:
  struct Lane {
    explicit Lane(std::function<void()> background_starts);

    int jobs = 0;  // The number of running and waiting jobs.
    server::Worker background;
    // This member is last, because its jobs use the members above.
    server::Worker loader;
  };
  struct Model {
    Lane* lane = nullptr;
    int jobs = 0;  // The number of running and waiting jobs.
  };

  // Returns the lane with the fewest jobs.
  Lane& Emptiest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Records that one waiting job has started.
  void Begins() ABSL_LOCKS_EXCLUDED(mu_);
  void Ended(const std::string& id) ABSL_LOCKS_EXCLUDED(mu_);

  const size_t most_waiting_;
  mutable absl::Mutex mu_;
  size_t waiting_ ABSL_GUARDED_BY(mu_) = 0;  // The number of waiting jobs.
  // The models that have running or waiting jobs, by id.
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mu_);
  // This member is last, because the lanes' threads use the members above. mu_
  // guards the member `jobs` of each lane.
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_LOAD_LANES_H_
