#ifndef SFMAMBA_SERVER_EXECUTOR_H_
#define SFMAMBA_SERVER_EXECUTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "model/vision_model.h"
#include "server/batcher.h"
#include "server/metrics.h"
#include "server/task.h"

namespace sfmamba {

// One loaded model behind its batcher: stacks the tasks of a batch, runs them and
// completes each.
//
// Thread-safe. The destructor lets the waiting tasks run, then frees the model.
class Executor {
 public:
  struct Options {
    std::string name;     // "<id>".
    std::string version;  // "<n>".
    std::vector<std::string> labels;  // One for each class.
    BatchOptions batch;
  };

  Executor(Options options, std::unique_ptr<VisionModel> model,
           Metrics* metrics);
  ~Executor();

  // Runs a batch of each size 1, 2, 4, ... max of zeros, so that the first
  // request finds everything allocated. The error is the model's.
  absl::Status WarmUp();

  // Room for `items` images of `bytes` together, held from before their decoding
  // until the reservation goes or the task that carries it is dispatched.
  // RESOURCE_EXHAUSTED with reason QUEUE_FULL and a retry hint when the caps are
  // reached. Cheap: no request is decoded before it holds one.
  absl::StatusOr<Reservation> Reserve(int items, int64_t bytes);

  // Never blocks; `task.done` is called exactly once: with the result, with
  // DEADLINE_EXCEEDED (EXPIRED_IN_QUEUE), CANCELLED, RESOURCE_EXHAUSTED,
  // INTERNAL (NON_FINITE_OUTPUT, DEVICE_ERROR) or, while stopping, UNAVAILABLE.
  void Submit(Task task);

  const Options& options() const { return options_; }
  const ModelConfig& config() const;
  std::string device() const;

 private:
  void RunBatch(std::vector<Task> tasks);
};

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_EXECUTOR_H_
