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

// Creates a LoadedModel from a version's folder. Reads and verifies the files,
// reserves memory, loads the model, prepares and measures its batches, and
// checks its results.
//
// Thread-safe.
class ModelLoader {
 public:
  // Called by a model if it could not capture a CUDA graph, see
  // ModelOptions::capture_failed.
  using CaptureFailed = std::function<void(const absl::Status&)>;
  // Creates a model from the verified content of a version's folder.
  using Load =
      std::function<absl::StatusOr<std::unique_ptr<model::VisionModel>>(
          const ModelDirectory& directory, CaptureFailed capture_failed)>;

  struct Options {
    // If true, versions without weights get random weights.
    bool random_init = false;
    bool on_gpus = false;  // True if models run on GPUs.
    // The options that the executors of all models share. Only drain_timeout,
    // profile_budget, device_failed and batch.client_share are used.
    batching::Executor::Options executor;
    // The precision of models whose configuration contains no precision.
    v1::Precision default_precision = v1::FP32;
    // Returns the precision that AUTO tries on a CPU. If a model allows INT8,
    // AUTO tries INT8 instead and does not call this function.
    std::function<model::Precision()> fast_precision = FastPrecision;
    // Returns the number of bytes that models may still allocate.
    std::function<int64_t()> free_memory = [] {
      return std::numeric_limits<int64_t>::max();
    };
  };

  struct Job {
    const ModelVersion& version;
    // Each field that is set here replaces the field of the same name in the
    // message `batching` of the version's config.textproto. If nullopt, no
    // field is replaced.
    std::optional<v1::Batching> batching;
    // A low-priority thread that does most of the work of the load. The thread
    // reads files, prepares weights, compares precisions and, on a CPU, checks
    // results. Other threads measure the times of batches. If `background` is
    // set, these threads wait for a turn on the device before each batch, so
    // that other models can serve requests in between.
    //
    // Null at startup, when the server accepts no requests yet. In this case,
    // the load runs on the calling thread and waits for no turns.
    server::Worker* background = nullptr;
    // Called periodically. If it returns true, the load ends with CANCELLED.
    std::function<bool()> stop = [] { return false; };
  };

  // `metrics` and `log` must outlive the loader.
  ModelLoader(Options options, Load load, observability::Metrics* metrics,
              observability::Logger* log);

  // Loads the version. Returns RESOURCE_EXHAUSTED if the free memory is not
  // sufficient for the model and a batch of one image. Errors contain no paths,
  // because clients see errors. Thread-safe.
  absl::StatusOr<std::unique_ptr<LoadedModel>> Run(const Job& job);

  // Stores the version's measured batch times. The next load of the same
  // network uses these times and measures nothing.
  void KeepTimes(const ModelVersion& version);

 private:
  // Calls fn() on the thread of `background`, or on the calling thread if
  // `background` is null. Returns the result of fn().
  template <typename Fn>
  static auto RunAs(server::Worker* background, Fn fn);
  absl::StatusOr<ModelDirectory> Read(const Job& job) const;
  // Returns the number of bytes that the load of the version needs, without the
  // memory for batches.
  static int64_t MemoryFor(const Job& job, const ModelDirectory& directory);
  // A model with loaded weights, and the memory that its batches need.
  struct Weights {
    std::unique_ptr<model::VisionModel> model;
    BatchFit fit;
  };
  absl::StatusOr<Weights> LoadWeights(const Job& job,
                                      const ModelDirectory& directory,
                                      model::Precision precision);
  // Loads the weights of a model whose precision is AUTO. First loads the model
  // in the precision that is probably the fastest. This is bf16 on a GPU. On a
  // CPU, this is int8 if the model allows int8. Otherwise it is the result of
  // Options::fast_precision().
  //
  // If the loaded model computes in fp32, returns this model. Otherwise
  // compares its results with the results in fp32. If the differences are small
  // enough, returns the model in the fast precision. If the differences are too
  // large, or if there is no memory for the comparison, loads the model again
  // in fp32. Logs the reason for the choice.
  absl::StatusOr<Weights> LoadChosen(const Job& job,
                                     const ModelDirectory& directory);
  // Compares the results of `reduced`, a model in a lower precision, with the
  // results in fp32. Also replaces `reduced.fit` with the fit of the fp32
  // model. This fit is large enough for `reduced` too, because batches in a
  // lower precision never need more memory than batches in fp32.
  absl::StatusOr<PrecisionCheck> CheckPrecision(const Job& job,
                                                const ModelDirectory& directory,
                                                Weights& reduced);
  // Returns a function that logs and counts the CUDA graphs that could not be
  // captured.
  CaptureFailed TellOfCaptures(const ModelVersion& version) const;

  const Options options_;
  const Load load_;
  observability::Metrics& metrics_;
  observability::Logger& log_;
  KnownTimes times_;
  RunMemory memory_;
  // The pointer is shared, because models use the devices and may outlive the
  // loader.
  const std::shared_ptr<batching::Devices> devices_ =
      std::make_shared<batching::Devices>();
};

// Estimates the peak memory of a load in bytes. `file_bytes` is the total size
// of the weights' files in bytes. `elements` is the number of weights in these
// files. At the peak, both the stored and the prepared weights are in memory.
int64_t MemoryToLoad(int64_t file_bytes, int64_t elements);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_LOADER_H_
