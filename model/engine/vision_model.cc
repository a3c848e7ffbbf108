#include "model/vision_model.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/empty.h"
#include "ATen/ops/from_blob.h"
#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "kernels/simd/cpu_features.h"
#include "model/engine/device_vision_model.h"
#include "model/engine/guarded.h"
#include "model/engine/make_vision_model.h"
#include "model/engine/network.h"
#include "model/engine/tensor_account.h"
#include "model/engine/unkept_tensors.h"
#include "model/engine/warm_up_input.h"
#include "model/ops/cpu/cpu_implementation.h"
#include "model/ops/cpu/ops.h"
#include "model/ops/parallel.h"
#include "model/ops/reference/reference_implementation.h"
#include "model/weights/random_weights.h"
#include "model/weights/safetensors.h"
#include "model/weights/state_dict.h"

namespace sfmamba {
namespace engine {
namespace {

std::unique_ptr<const ops::Implementation> MakeImplementation(
    const model::ModelConfig& config, const model::ModelOptions& options,
    model::Precision precision) {
  if (options.reference)
    return std::make_unique<ops::ReferenceImplementation>();
  return std::make_unique<ops::CpuImplementation>(
      precision,
      /*int8_convolutions=*/config.task != model::VisionTask::kDetection);
}

class CpuVisionModel : public model::VisionModel {
 public:
  CpuVisionModel(const model::ModelConfig& config,
                 const model::ModelOptions& options,
                 const weights::StateDict::Scope& scope)
      : config_(config),
        options_(options),
        precision_(ops::CpuImplementation::NativePrecision(config.precision)),
        implementation_(MakeImplementation(config, options, precision_)),
        network_(config, scope, *implementation_) {}

  int contexts() const override {
    return std::max<int>(1, options_.processor_groups.size());
  }
  std::string context_device(int index) const override {
    return contexts() == 1 ? "cpu" : absl::StrCat("cpu:", index);
  }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int index) override;

  // Implements ExecutionContext::Run().
  absl::Status Run(absl::Span<const model::ModelInput> images,
                   model::RunInfo* info,
                   model::ExecutionContext::Done done) const {
    const absl::Status status = network_.Check(images, options_.fold_rows);
    if (!status.ok() || images.empty()) return status;
    *info = {static_cast<int>(images.size()), {}};
    return Guarded([&] {
      // `serial` limits libtorch's operators to one thread. Otherwise
      // libtorch's threads would spin after each operator and take time from
      // the threads of ops::ParallelFor().
      std::optional<ops::SerialOperators> serial;
      if (HasLoops()) serial.emplace();
      RunAll(images, done);
      return absl::OkStatus();
    });
  }

  // Implements ExecutionContext::ImagesInMemory().
  int ImagesInMemory(int images) const;

  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override { return precision_; }
  std::string device() const override {
    const std::string several =
        contexts() == 1 ? "" : absl::StrCat(", ", contexts(), " contexts");
    return absl::StrCat("cpu (", kernels::CpuIsaName(kernels::ActiveCpuIsa()),
                        kernels::HasAmxBf16() ? ", amx" : "",
                        precision_ == model::Precision::kInt8       ? ", int8"
                        : precision_ == model::Precision::kBFloat16 ? ", bf16"
                                                                    : ", fp32",
                        several, ")");
  }
  int fold_factor(int images) const override {
    if (options_.fold_rows > 0) return options_.fold_rows;
    return static_cast<int>(network_.Sequences(/*images=*/1));
  }

 private:
  // Returns whether ops::ParallelFor() divides most of the work among threads.
  // If not, libtorch's operators do this themselves.
  bool HasLoops() const {
    return !options_.reference && ops::CpuImplementation::HasLoops();
  }

  // Returns the normalised images with their padding.
  at::Tensor ToTensor(absl::Span<const model::ModelInput> images) const;
  // Copies the normalised image to x [3, height, width].
  void CopyImage(const model::ModelInput& image, const at::Tensor& x) const;

  // Gives each thread the same number of a classifier's images. Each thread
  // runs its images through the whole model without waiting for other threads,
  // so that the maps stay in its cache. It runs several images at once if this
  // is faster. Some images may be left over if their number is not a multiple
  // of the number of threads. These images run one by one, each on all threads,
  // because one image on one thread would leave the other threads idle. All
  // images of a dense model also run one by one on all threads, because each
  // image needs much memory. If fold_rows is set, all images run as one batch.
  void RunAll(absl::Span<const model::ModelInput> images,
              model::ExecutionContext::Done done) const;
  // Returns how many images of a batch of `images` images are divided equally
  // among the threads. Returns 0 for a dense model.
  int64_t SharedImages(int64_t images) const;
  // Returns the number of images that a thread runs at once.
  int64_t ImagesAtOnce() const;
  std::vector<model::Result> RunBatch(
      absl::Span<const model::ModelInput> images) const;

  const model::ModelConfig config_;
  const model::ModelOptions options_;
  const model::Precision precision_;
  const std::unique_ptr<const ops::Implementation> implementation_;
  const Network network_;
};

at::Tensor CpuVisionModel::ToTensor(
    absl::Span<const model::ModelInput> images) const {
  const int64_t height = config_.Padded(images[0].height);
  const int64_t width = config_.Padded(images[0].width);
  const at::Tensor x =
      at::empty({static_cast<int64_t>(images.size()), 3, height, width},
                at::TensorOptions()
                    .dtype(at::kFloat)
                    .memory_format(at::MemoryFormat::ChannelsLast));
  for (size_t i = 0; i < images.size(); ++i) {
    const model::ModelInput& image = images[i];
    if (image.height != height || image.width != width) x[i].zero_();
    CopyImage(image, x[i].narrow(1, 0, image.height).narrow(2, 0, image.width));
  }
  return x;
}

void CpuVisionModel::CopyImage(const model::ModelInput& image,
                               const at::Tensor& x) const {
  if (image.pixels == nullptr) {
    const at::Tensor values = at::from_blob(const_cast<float*>(image.values),
                                            {3, image.height, image.width});
    ops::ParallelFor(image.height, /*grain=*/64,
                     [&](int64_t begin, int64_t end) {
                       // The mode is set for each thread.
                       const c10::InferenceMode guard;
                       x.narrow(1, begin, end - begin)
                           .copy_(values.narrow(1, begin, end - begin));
                     });
    return;
  }
  const int64_t row = int64_t{image.width} * (image.planar ? 1 : 3);
  const int64_t plane = image.planar ? image.height * row : 0;
  // A single thread normalises an image of fewer than 512 rows, which is twice
  // the grain. Most classifiers' images are that small.
  ops::ParallelFor(
      image.height, /*grain=*/256, [&](int64_t begin, int64_t end) {
        const c10::InferenceMode guard;  // The mode is set for each thread.
        ops::NormalizeImage(image.pixels + begin * row, plane, config_.mean,
                            config_.std, x.narrow(1, begin, end - begin));
      });
}

void CpuVisionModel::RunAll(absl::Span<const model::ModelInput> images,
                            model::ExecutionContext::Done done) const {
  // If fold_rows is set, a row may contain sequences of several images, so all
  // images run as one batch.
  if (options_.fold_rows > 0) {
    for (model::Result& result : RunBatch(images)) done(std::move(result));
    return;
  }
  const int64_t shared = SharedImages(images.size());
  const int64_t at_once = ImagesAtOnce();
  std::vector<model::Result> results(shared);
  ops::ParallelFor(shared, 1, [&](int64_t begin, int64_t end) {
    const c10::InferenceMode guard;  // The mode is set for each thread.
    for (int64_t i = begin; i < end; i += at_once) {
      std::vector<model::Result> own =
          RunBatch(images.subspan(i, std::min(at_once, end - i)));
      std::move(own.begin(), own.end(), results.begin() + i);
    }
  });
  // `done` may be called only on this thread, and in the order of the images.
  for (model::Result& result : results) done(std::move(result));
  for (size_t i = shared; i < images.size(); ++i) {
    done(std::move(RunBatch(images.subspan(i, 1))[0]));
  }
}

int64_t CpuVisionModel::SharedImages(int64_t images) const {
  const int64_t threads = ops::LoopThreads();
  return config_.task == model::VisionTask::kClassification
             ? images / threads * threads
             : 0;
}

int64_t CpuVisionModel::ImagesAtOnce() const {
  return std::max(ops::CpuImplementation::ImagesAtOnce(),
                  network_.ImagesAtOnce());
}

int CpuVisionModel::ImagesInMemory(int images) const {
  if (options_.fold_rows > 0) return images;
  return static_cast<int>(std::clamp<int64_t>(
      SharedImages(images), 1, ops::LoopThreads() * ImagesAtOnce()));
}

std::vector<model::Result> CpuVisionModel::RunBatch(
    absl::Span<const model::ModelInput> images) const {
  return network_.Forward(ToTensor(images), options_.fold_rows,
                          ToInfos(images));
}

// Runs batches on a group of processors, or on all processors.
class CpuContext : public model::ExecutionContext {
 public:
  // `model` must outlive the context. If `group` is null, batches run on any
  // processors.
  CpuContext(const CpuVisionModel& model, const model::ProcessorGroup* group)
      : model_(model) {
    if (group != nullptr) on_group_.emplace(*group);
  }

  absl::Status Run(absl::Span<const model::ModelInput> images,
                   model::RunInfo* info, Done done) override {
    return model_.Run(images, info, done);
  }

  absl::StatusOr<int64_t> MeasureMemory(
      int height, int width, int64_t most_bytes,
      const std::function<bool()>& stop) override {
    // The pixels from calloc() are only read, so they take no memory. Linux
    // maps them all to one page of zeros.
    const std::unique_ptr<void, decltype(&std::free)> black(
        std::calloc(int64_t{height} * width, 3), &std::free);
    model::ModelInput input;
    input.height = height;
    input.width = width;
    input.pixels = static_cast<const uint8_t*>(black.get());
    if (model_.config().task == model::VisionTask::kDetection) {
      model::DetectionOptions options;
      options.masks = true;
      input.options = options;
    }
    TensorAccount account(most_bytes, stop);
    model::RunInfo info;
    const absl::Status status =
        black == nullptr
            ? absl::ResourceExhaustedError("there is too little memory")
            : Run({&input, 1}, &info, [](const model::Result&) {});
    if (account.stopped()) return absl::CancelledError("loading was stopped");
    if (!status.ok()) return status;
    return account.peak();
  }

  int ImagesInMemory(int images) const override {
    return model_.ImagesInMemory(images);
  }

  // Runs one batch that uses all ways of running an image. A classifier runs
  // one image per thread at the same time, and one more image on all threads. A
  // dense model runs each image on all threads.
  absl::Status Prepare(int /*min_images*/, int max_images) override {
    const WarmUpInput input(model_.config());
    const bool classifies =
        model_.config().task == model::VisionTask::kClassification;
    const int threads = static_cast<int>(ops::LoopThreads());
    const int images = classifies ? std::min(max_images, threads + 1) : 1;
    model::RunInfo info;
    return Run(input.Batch(images), &info, [](const model::Result&) {});
  }

 private:
  const CpuVisionModel& model_;
  std::optional<ops::OnProcessorGroup> on_group_;
};

absl::StatusOr<std::unique_ptr<model::ExecutionContext>>
CpuVisionModel::MakeContext(int index) {
  const std::vector<model::ProcessorGroup>& groups = options_.processor_groups;
  return std::make_unique<CpuContext>(
      *this, groups.empty() ? nullptr : &groups[index]);
}

}  // namespace

absl::StatusOr<std::unique_ptr<model::VisionModel>> MakeVisionModel(
    const model::ModelConfig& config, weights::StateDict& weights,
    const model::ModelOptions& options) {
  // While `unkept` exists, freed memory is not cached. The memory that is used
  // to pack the weights is not needed again.
  const UnkeptTensors unkept;
  if (!options.gpus.empty())
    return MakeDeviceVisionModel(config, weights, options);
  std::unique_ptr<model::VisionModel> model;
  const absl::Status status = Guarded([&] {
    model = std::make_unique<CpuVisionModel>(config, options, weights.root());
    return weights.Finish();
  });
  if (!status.ok()) return status;
  return model;
}

}  // namespace engine

namespace model {

absl::StatusOr<std::unique_ptr<VisionModel>> VisionModel::Random(
    const ModelConfig& config, uint64_t seed, const ModelOptions& options) {
  const absl::Status status = Validate(config);
  if (!status.ok()) return status;
  weights::StateDict weights(weights::MakeRandomWeights(seed));
  return engine::MakeVisionModel(config, weights, options);
}

absl::StatusOr<std::unique_ptr<VisionModel>> VisionModel::Load(
    const ModelConfig& config, absl::Span<const std::string> weights_paths,
    const ModelOptions& options) {
  const absl::Status status = Validate(config);
  if (!status.ok()) return status;
  std::vector<std::unique_ptr<weights::SafetensorsFile>> files;
  std::map<std::string, weights::TensorView> tensors;
  for (const std::string& path : weights_paths) {
    auto file = weights::SafetensorsFile::Open(path);
    if (!file.ok()) return file.status();
    const absl::Status added =
        weights::AddTensors((*file)->tensors(), &tensors);
    if (!added.ok()) return added;
    files.push_back(*std::move(file));
  }
  weights::StateDict weights(tensors);
  return engine::MakeVisionModel(config, weights, options);
}

}  // namespace model
}  // namespace sfmamba
