#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_LOADER_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_LOADER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/vision_model.h"
#include "server/batching/device_turns.h"
#include "server/batching/executor.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/repository/known_times.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_version.h"
#include "server/repository/precision/fast_precision.h"
#include "server/repository/precision/precision_check.h"
#include "server/repository/run_memory.h"
#include "server/threads/worker.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// Makes a LoadedModel of a version's folder: reads and verifies it, asks for
// memory, loads the model, prepares and measures its batches, and checks what
// it answers.
//
// Thread-safe.
class ModelLoader {
 public:
  // Loads a model, which calls `capture_failed` as ModelOptions says.
  using CaptureFailed = std::function<void(const absl::Status&)>;
  using Load =
      std::function<absl::StatusOr<std::unique_ptr<model::VisionModel>>(
          const ModelDirectory& directory, CaptureFailed capture_failed)>;

  struct Options {
    // Versions without weights get random ones.
    bool random_init = false;
    bool on_gpus = false;  // Where models run.
    // What all executors have in common: drain_timeout, profile_budget,
    // device_failed and batch.client_share.
    batching::Executor::Options executor;
    // Precision of models whose configuration states none.
    v1::Precision default_precision = v1::FP32;
    // The precision that AUTO prefers on a CPU.
    std::function<model::Precision()> fast_precision = FastPrecision;
    int compute_threads = 1;  // All CPU contexts share them.
    // The bytes that a model may take now.
    std::function<int64_t()> free_memory = [] {
      return std::numeric_limits<int64_t>::max();
    };
  };

  struct Job {
    const ModelVersion& version;
    // In place of what config.textproto says, if it is set.
    std::optional<v1::Batching> batching;
    // Not null if other models serve meanwhile: a thread of low priority, which
    // reads files, prepares weights, compares precisions and, on a CPU, checks
    // answers. Measured batches wait for their turns.
    server::Worker* background = nullptr;
    // Asked now and then whether to end with CANCELLED.
    std::function<bool()> stop = [] { return false; };
  };

  // `metrics` and `log` outlive the loader.
  ModelLoader(Options options, Load load, observability::Metrics* metrics,
              observability::Logger* log);

  // Errors name no paths, because they are shown to clients. RESOURCE_EXHAUSTED
  // if the model, or a batch of one image, does not fit into the free memory.
  // Thread-safe.
  absl::StatusOr<std::unique_ptr<LoadedModel>> Run(const Job& job);

  // Remembers what has been learnt of the times of a model's batches for the
  // next load of its network.
  void KeepTimes(const ModelVersion& version);

 private:
  // Returns fn(), called by `background`'s thread or, if null, by this one.
  template <typename Fn>
  static auto RunAs(server::Worker* background, Fn fn);
  absl::StatusOr<ModelDirectory> Read(const Job& job) const;
  // The bytes that a load of the version takes before it runs a batch.
  static int64_t MemoryFor(const Job& job, const ModelDirectory& directory);
  // A model and how its batches fit into the memory.
  struct Weights {
    std::unique_ptr<model::VisionModel> model;
    BatchFit fit;
  };
  absl::StatusOr<Weights> LoadWeights(const Job& job,
                                      const ModelDirectory& directory,
                                      model::Precision precision);
  // Loads the weights for AUTO: in the faster precision, or in fp32 if the
  // answers differ too much from those in fp32. The log says why.
  absl::StatusOr<Weights> LoadChosen(const Job& job,
                                     const ModelDirectory& directory);
  // Compares the answers of `reduced` with those in fp32. Measures what fp32's
  // batches take, which is no less, in place of `reduced.fit`.
  absl::StatusOr<PrecisionCheck> CheckPrecision(const Job& job,
                                                const ModelDirectory& directory,
                                                Weights& reduced);
  // Logs and counts the graphs that a version cannot record.
  CaptureFailed TellOfCaptures(const ModelVersion& version) const;

  const Options options_;
  const Load load_;
  observability::Metrics& metrics_;
  observability::Logger& log_;
  KnownTimes times_;
  RunMemory memory_;
  // The models that somebody holds may outlive the loader.
  const std::shared_ptr<batching::Devices> devices_ =
      std::make_shared<batching::Devices>();
};

// Estimates the peak memory, in bytes, of loading weights of this many elements
// from files of this many bytes: both the stored and the prepared ones are
// held.
int64_t MemoryToLoad(int64_t file_bytes, int64_t elements);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_LOADER_H_
