#ifndef SFMAMBA_SERVER_REPOSITORY_PRECISION_CHOOSER_H_
#define SFMAMBA_SERVER_REPOSITORY_PRECISION_CHOOSER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "server/batching/device_turns.h"
#include "server/batching/executor.h"
#include "server/observability/log.h"
#include "server/repository/kept_texts.h"
#include "server/repository/precision/precision_check.h"
#include "server/threads/worker.h"

namespace sfmamba::repository {

// Loads models whose precision is AUTO: in bf16 where the device computes it
// natively, not more slowly than fp32, and the model's answers are close enough
// to those in fp32, as ComparePrecisions() says; otherwise in fp32. What was
// found is kept, so that the same weights are checked once on a device. The log
// says what was chosen and why.
//
// Thread-safe.
class PrecisionChooser {
 public:
  struct Job {
    std::string model;    // "models/{id}/versions/{n}".
    std::string content;  // The network and its weights, on one line.
    // Loads the model. In fp32 if the device does not compute `precision`.
    std::function<absl::StatusOr<std::unique_ptr<model::VisionModel>>(
        model::Precision precision)>
        load;
    // The images that are compared; called when they are needed.
    std::function<absl::StatusOr<std::vector<batching::Executor::Probe>>()>
        images;
    // Whether there is memory now for the model in both precisions.
    std::function<bool()> has_room;
    // Both not null where other models serve meanwhile: on a CPU images run on
    // this thread, beside the others' batches; elsewhere they wait for turns of
    // the lowest priority.
    server::Worker* background = nullptr;
    std::shared_ptr<batching::Devices> devices;
    std::function<bool()> stop = [] { return false; };
  };

  // `folder` keeps what was found, if it is not empty. `build`: of the kernels.
  // `log` outlives this.
  PrecisionChooser(const std::string& folder, std::string build,
                   observability::Logger* log)
      : build_(std::move(build)),
        log_(*log),
        records_({folder, ".precision", "the check of a precision is not kept"},
                 log) {}

  // Loads the model in the precision that is chosen. Returns the errors of
  // `load` and `images`, and CANCELLED.
  absl::StatusOr<std::unique_ptr<model::VisionModel>> Load(const Job& job);

 private:
  // How `reduced` compares, known or found now.
  absl::StatusOr<PrecisionCheck> Check(const Job& job,
                                       model::VisionModel& reduced);
  absl::StatusOr<PrecisionCheck> Compare(const Job& job,
                                         model::VisionModel& reduced);

  const std::string build_;
  observability::Logger& log_;
  KeptTexts records_;
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_PRECISION_CHOOSER_H_
