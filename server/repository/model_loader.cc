#include "server/repository/model_loader.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "server/batching/executor.h"
#include "server/repository/golden.h"
#include "server/repository/golden_images.h"
#include "server/repository/model_config.h"
#include "server/repository/version_files.h"

namespace sfmamba::repository {
namespace {

// The assumed memory per weight in bytes, after the weights were prepared for
// the kernels. This is an average over all weights of a model. A single weight
// may need more, because preparation enlarges weights. AMX splits an fp32
// weight into three bf16 parts. Each matrix is padded to whole huge pages. A
// Winograd convolution stores 36 or 81 values for a kernel of 3x3 weights. The
// largest measured average is 8 bytes, for MambaVision-T and MambaVision-B.
constexpr int64_t kPreparedBytes = 8;
// The memory in bytes that a model needs in addition to its weights. This
// includes the largest tensor during preparation, threads, and a classifier's
// batch. 76 MiB were measured for MambaVision-B.
constexpr int64_t kBesideWeights = 96 << 20;

absl::Status Stopped() { return absl::CancelledError("loading was stopped"); }

// Runs `model` and returns its result for each image.
absl::StatusOr<std::vector<model::Result>> Answers(
    model::VisionModel& model,
    const std::vector<batching::Executor::Probe>& images,
    const std::function<bool()>& stop) {
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> context =
      model.MakeContext(0);
  if (!context.ok()) return context.status();
  std::vector<model::Result> answers;
  for (const batching::Executor::Probe& image : images) {
    if (stop()) return Stopped();
    const model::ModelInput input = image.input();
    model::RunInfo info;
    const absl::Status status = (*context)->Run(
        absl::MakeConstSpan(&input, 1), &info,
        [&](model::Result answer) { answers.push_back(std::move(answer)); });
    if (!status.ok()) return status;
  }
  return answers;
}

}  // namespace

int64_t MemoryToLoad(int64_t file_bytes, int64_t elements) {
  return file_bytes + kPreparedBytes * elements + kBesideWeights;
}

ModelLoader::ModelLoader(Options options, Load load,
                         observability::Metrics* metrics,
                         observability::Logger* log)
    : options_(std::move(options)),
      load_(std::move(load)),
      metrics_(*metrics),
      log_(*log) {}

template <typename Fn>
auto ModelLoader::RunAs(server::Worker* background, Fn fn) {
  std::optional<decltype(fn())> result;
  const auto run = [&] { result.emplace(fn()); };
  background != nullptr ? background->Run(run) : run();
  return *std::move(result);
}

absl::StatusOr<ModelDirectory> ModelLoader::Read(const Job& job) const {
  absl::StatusOr<ModelDirectory> directory = ReadModelDirectory(
      job.version.path(), options_.random_init,
      job.batching.value_or(v1::Batching()), options_.on_gpus);
  if (!directory.ok()) return directory.status();
  directory->batch.client_share = options_.executor.batch.client_share;
  if (directory->precision == v1::PRECISION_UNSPECIFIED) {
    directory->precision = options_.default_precision;
    directory->config.precision = ToPrecision(options_.default_precision);
  }
  for (const std::string& warning : directory->warnings) {
    log_.Warning(observability::LogModule::kModels, warning,
                 {{"model", job.version.name()}});
  }
  if (directory->weights_paths.empty()) {
    log_.Warning(observability::LogModule::kModels, "the weights are random",
                 {{"model", job.version.name()}});
  }
  return directory;
}

int64_t ModelLoader::MemoryFor(const Job& job,
                               const ModelDirectory& directory) {
  // At startup, `background` is null and only the size of the files is
  // reserved. A model that needs nearly all memory can therefore start.
  return job.background != nullptr
             ? MemoryToLoad(directory.weights_size, directory.weights_elements)
             : directory.weights_size;
}

absl::StatusOr<ModelLoader::Weights> ModelLoader::LoadWeights(
    const Job& job, const ModelDirectory& stated, model::Precision precision) {
  ModelDirectory directory = stated;
  directory.config.precision = precision;
  absl::StatusOr<std::unique_ptr<model::VisionModel>> model =
      load_(directory, TellOfCaptures(job.version));
  if (!model.ok()) return model.status();
  if (precision == stated.config.precision &&
      precision != model::Precision::kFloat32 &&
      (*model)->precision() == model::Precision::kFloat32) {
    log_.Warning(
        observability::LogModule::kModels,
        absl::StrCat("converted to FP32: this processor does not compute ",
                     PrecisionName(precision)),
        {{"model", job.version.name()}});
  }
  BatchFitOptions options;
  const int64_t by_others =
      memory_.taken_for_loads() - MemoryFor(job, directory);
  options.free = options_.free_memory() - by_others - memory_.most_served();
  options.max_batch_size = directory.batch.max_batch_size;
  options.memory = &memory_;
  options.stop = job.stop;
  absl::StatusOr<BatchFit> fit = FitBatch(**model, options);
  if (!fit.ok()) return fit.status();
  return Weights{*std::move(model), *std::move(fit)};
}

absl::StatusOr<ModelLoader::Weights> ModelLoader::LoadChosen(
    const Job& job, const ModelDirectory& directory) {
  const auto tell = [&](model::Precision precision, absl::string_view why) {
    log_.Info(observability::LogModule::kModels, "the precision is chosen",
              {{"model", job.version.name()},
               {"precision", PrecisionName(precision)},
               {"why", why}});
  };
  const model::Precision fast = options_.on_gpus ? model::Precision::kBFloat16
                                : directory.allow_int8
                                    ? model::Precision::kInt8
                                    : options_.fast_precision();
  absl::StatusOr<Weights> weights = LoadWeights(job, directory, fast);
  if (!weights.ok()) return weights;
  const model::Precision precision = weights->model->precision();
  if (precision == model::Precision::kFloat32) {
    tell(precision, "it is the fastest on this processor");
    return weights;
  }
  const absl::StatusOr<PrecisionCheck> check =
      CheckPrecision(job, directory, *weights);
  if (!check.ok()) return check.status();
  tell(check->allowed ? precision : model::Precision::kFloat32, check->figures);
  if (check->allowed) return weights;
  *weights = Weights();  // Frees the weights in the lower precision.
  if (job.stop()) return Stopped();
  return LoadWeights(job, directory, model::Precision::kFloat32);
}

absl::StatusOr<PrecisionCheck> ModelLoader::CheckPrecision(
    const Job& job, const ModelDirectory& directory, Weights& reduced) {
  const PrecisionCheck no_memory = {false,
                                    "there is no memory to compare with FP32"};
  const int64_t each =
      MemoryToLoad(directory.weights_size, directory.weights_elements);
  if (2 * each > options_.free_memory()) return no_memory;
  auto images = ReadGolden(job.version.path(), directory.config);
  if (!images.ok()) return images.status();
  if (images->empty()) images = MadeUpImages(directory.config);
  const auto answers = Answers(*reduced.model, *images, job.stop);
  if (absl::IsCancelled(answers.status())) return answers.status();
  const model::Precision precision = reduced.model->precision();
  if (!answers.ok()) {
    return PrecisionCheck{false,
                          absl::StrCat(PrecisionName(precision),
                                       " fails: ", answers.status().message())};
  }
  // `reduced.fit` may hold the exclusive right to use most of the free memory
  // (BatchFit::most). LoadWeights() below may wait for this right. The right is
  // therefore released here.
  reduced.fit = BatchFit();
  absl::StatusOr<Weights> full =
      LoadWeights(job, directory, model::Precision::kFloat32);
  if (absl::IsResourceExhausted(full.status())) return no_memory;
  if (!full.ok()) return full.status();
  reduced.fit = std::move(full->fit);
  const auto expected = Answers(*full->model, *images, job.stop);
  if (!expected.ok()) return expected.status();
  return ComparePrecisions(precision, *answers, *expected);
}

absl::StatusOr<std::unique_ptr<LoadedModel>> ModelLoader::Run(const Job& job) {
  const std::string fingerprint = Fingerprint(job.version.path());
  absl::StatusOr<ModelDirectory> directory =
      RunAs(job.background, [&] { return Read(job); });
  if (!directory.ok()) return directory.status();
  const absl::StatusOr<RunMemory::Hold> memory = memory_.TakeForLoad(
      MemoryFor(job, *directory), options_.free_memory, job.stop);
  if (!memory.ok()) return memory.status();
  if (job.stop()) return Stopped();
  absl::StatusOr<Weights> weights = RunAs(job.background, [&] {
    return directory->precision == v1::AUTO
               ? LoadChosen(job, *directory)
               : LoadWeights(job, *directory, directory->config.precision);
  });
  if (!weights.ok()) return weights.status();
  model::VisionModel& model = *weights->model;
  // The files were read twice, for the SHA-256 and for the weights. If a file
  // has changed in between, the SHA-256 may not belong to the weights in
  // memory.
  if (Fingerprint(job.version.path()) != fingerprint) {
    return absl::UnavailableError("its files were written while it was loaded");
  }
  if (job.stop()) return Stopped();
  if (weights->fit.max_batch_size < directory->batch.max_batch_size) {
    log_.Warning(observability::LogModule::kModels,
                 "batches are smaller than max_batch_size: more images do not "
                 "fit into the memory",
                 {{"model", job.version.name()},
                  {"images", weights->fit.max_batch_size}});
    directory->batch.max_batch_size = weights->fit.max_batch_size;
  }
  auto loaded = std::make_unique<LoadedModel>();
  batching::Executor::Options options = options_.executor;
  options.name = job.version.id();
  options.version = absl::StrCat(job.version.number());
  options.batch = directory->batch;
  options.batch.model = job.version.id();
  options.devices = devices_;
  options.background = job.background;
  loaded->precision = model.precision();
  loaded->times_key = absl::StrCat(directory->network, ", ", model.device(),
                                   ", ", PrecisionName(model.precision()), ", ",
                                   model.contexts(), " contexts");
  absl::StatusOr<std::vector<batching::Executor::Probe>> probes =
      ReadGolden(job.version.path(), directory->config);
  if (!probes.ok()) return probes.status();
  options.probes = *std::move(probes);
  options.probes.push_back(BlackProbe(directory->config));
  options.times = times_.Get(loaded->times_key);
  if (options.times.empty()) {
    log_.Debug(observability::LogModule::kModels,
               "the times of batches are measured",
               {{"model", job.version.name()}});
  }
  options.stop = job.stop;
  loaded->directory = *std::move(directory);
  // The executor is created here and not on the background thread, because the
  // executor's threads inherit the priority of the thread that creates them.
  loaded->executor = std::make_unique<batching::Executor>(
      std::move(options), std::move(weights->model), &metrics_);
  const absl::Status prepared = loaded->executor->WaitUntilPrepared();
  if (!prepared.ok()) return prepared;
  if (job.stop()) return Stopped();
  loaded->load_time = absl::Now();
  loaded->run_memory = memory_.AddServed(weights->fit.bytes);
  return loaded;
}

void ModelLoader::KeepTimes(const ModelVersion& version) {
  const auto loaded = version.Loaded();
  if (!loaded.ok()) return;
  std::vector<batching::BatchTime> times = (*loaded)->executor->Times();
  if (!times.empty()) times_.Set((*loaded)->times_key, std::move(times));
}

ModelLoader::CaptureFailed ModelLoader::TellOfCaptures(
    const ModelVersion& version) const {
  return [log = &log_, name = version.name(),
          metrics = version.metrics()](const absl::Status& error) {
    metrics->CaptureFailed();
    log->Warning(observability::LogModule::kModels,
                 "a graph could not be recorded: its batches are launched "
                 "kernel by kernel until a later try succeeds",
                 {{"model", name}, {"error", error.message()}});
  };
}

}  // namespace sfmamba::repository
