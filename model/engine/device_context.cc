#include "model/engine/device_context.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ATen/ops/empty.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/capture_mutex.h"
#include "model/engine/guarded.h"
#include "model/engine/warm_up_input.h"

namespace sfmamba::engine {
namespace {

// The most graphs of a context. This suffices for all padded sizes up to 512
// images of one input size, and for a few other input sizes. A graph takes a
// few MB.
constexpr int kMaxGraphs = 64;
constexpr int kChannels = 3;

int64_t PixelBytes(int height, int width) {
  return int64_t{kChannels} * height * width;
}

int64_t BytesOf(absl::Span<const model::ModelInput> images) {
  int64_t bytes = 0;
  for (const model::ModelInput& image : images) {
    bytes += PixelBytes(image.height, image.width);
  }
  return bytes;
}

bool IsUint8(const model::ModelInput& image) { return image.pixels != nullptr; }

// Returns whether all images have the same size and need no padding.
bool AreAlike(const model::ModelConfig& config,
              absl::Span<const model::ModelInput> images) {
  return std::all_of(images.begin(), images.end(),
                     [&](const model::ModelInput& image) {
                       return image.height == config.Padded(images[0].height) &&
                              image.width == config.Padded(images[0].width);
                     });
}

}  // namespace

DeviceContext::DeviceContext(const Network& network,
                             const model::ModelConfig& config,
                             const DeviceRuntime& runtime, int gpu,
                             DeviceHealth* health, Options options)
    : network_(network),
      config_(config),
      options_(std::move(options)),
      ops_(runtime.ops()),
      device_(runtime.device(gpu)),
      capturing_(kernels::CaptureMutex(gpu)),
      health_(*health),
      stream_(runtime.MakeStream(gpu)),
      plan_(options_.graphs ? kMaxGraphs : 0) {}

absl::Status DeviceContext::Run(absl::Span<const model::ModelInput> images,
                                model::RunInfo* info, Done done) {
  absl::Status status = network_.Check(images, options_.fold_rows);
  if (!status.ok() || images.empty()) return status;
  status = CheckHealth();
  if (!status.ok()) return status;
  absl::StatusOr<Results> results = RunBatch(images, info);
  if (!results.ok()) {
    // A permanent failure, which RunBatch() records, is reported as such.
    status = CheckHealth();
    return status.ok() ? results.status() : status;
  }
  for (model::Result& result : *results) done(std::move(result));
  return absl::OkStatus();
}

absl::Status DeviceContext::Prepare(int min_images, int max_images) {
  const WarmUpInput input(config_);
  model::RunInfo info;
  const auto ignore = [](const model::Result&) {};
  // A dense model has no graphs; one image loads its kernels.
  if (!network_.classifies()) return Run(input.Batch(1), &info, ignore);
  // The largest comes first: to allocate more memory drops all graphs.
  for (const int images : PaddedBatchSizes(max_images)) {
    if (images < min_images) break;
    // Run() would refuse a batch that the folding does not divide.
    if (options_.fold_rows > 0 &&
        network_.Sequences(images) % options_.fold_rows != 0) {
      continue;
    }
    const absl::Status status = Run(input.Batch(images), &info, ignore);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DeviceContext::CheckHealth() const {
  const absl::Status status = health_.status();
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("the device has failed: ", status.message()));
}

absl::StatusOr<DeviceContext::Results> DeviceContext::RunBatch(
    absl::Span<const model::ModelInput> images, model::RunInfo* info) {
  Results results;
  const absl::Status status = Guarded([&] {
    const auto scope = stream_->Enter();
    results = RunOrThrow(images, info);
    return absl::OkStatus();
  });
  if (status.ok()) return results;
  health_.Update(stream_->Check());
  return status;
}

DeviceContext::Results DeviceContext::RunOrThrow(
    absl::Span<const model::ModelInput> images, model::RunInfo* info) {
  const bool uint8 = std::all_of(images.begin(), images.end(), IsUint8);
  if (uint8 && network_.classifies() && AreAlike(config_, images)) {
    return RunPixels(images, info);
  }
  std::vector<heads::ImageInfo> infos;
  for (const model::ModelInput& image : images) infos.push_back(ToInfo(image));
  *info = {static_cast<int>(images.size()), {}};
  // Libraries may wait for the whole device, which breaks another context's
  // recording.
  const absl::ReaderMutexLock lock(&capturing_);
  if (uint8) CopyIn(images, BytesOf(images));
  const ops::ImageBatch x =
      uint8 ? BatchOf(images, pixels_) : ops::ImageBatch(FromMemory(images));
  return network_.Forward(x, options_.fold_rows, infos);
}

DeviceContext::Results DeviceContext::RunPixels(
    absl::Span<const model::ModelInput> images, model::RunInfo* info) {
  // A requested folding must divide the sequences, so the batch is not padded.
  const int count = static_cast<int>(images.size());
  const GraphPlan::Key key = {
      options_.fold_rows > 0 ? count : PaddedBatchSize(count), images[0].height,
      images[0].width};
  CopyIn(images, key.images * PixelBytes(key.height, key.width));
  Results results = CopyOut(Answer(key), count);
  *info = {key.images, stream_->ComputeTime()};
  return results;
}

void DeviceContext::Reserve(int64_t bytes) {
  if (pixels_.defined() && pixels_.numel() >= bytes) return;
  stream_->Wait();
  graphs_.clear();  // Graphs contain the old address.
  plan_.Reset();
  pixels_ = at::Tensor();  // Frees its memory before more is allocated.
  host_pixels_ = stream_->AllocateHost(bytes, at::kByte);
  pixels_ = stream_->AllocateDevice(bytes, at::kByte);
}

void DeviceContext::CopyIn(absl::Span<const model::ModelInput> images,
                           int64_t bytes) {
  Reserve(bytes);
  uint8_t* to = host_pixels_.data_ptr<uint8_t>();
  int64_t used = 0;
  for (const model::ModelInput& image : images) {
    const int64_t size = PixelBytes(image.height, image.width);
    std::memcpy(to + used, image.pixels, size);
    used += size;
  }
  std::memset(to + used, 0, bytes - used);  // Images that pad the batch.
  stream_->CopyIn(host_pixels_.narrow(0, 0, bytes),
                  pixels_.narrow(0, 0, bytes));
}

ops::ImageBatch DeviceContext::BatchOf(
    absl::Span<const model::ModelInput> images,
    const at::Tensor& pixels) const {
  ops::PixelBatch batch;
  batch.height = config_.Padded(images[0].height);
  batch.width = config_.Padded(images[0].width);
  batch.mean = config_.mean;
  batch.std = config_.std;
  const uint8_t* next = pixels.const_data_ptr<uint8_t>();
  for (const model::ModelInput& image : images) {
    batch.images.push_back({next, image.height, image.width});
    next += PixelBytes(image.height, image.width);
  }
  return ops::ImageBatch(std::move(batch), device_, options_.type);
}

at::Tensor DeviceContext::FromMemory(
    absl::Span<const model::ModelInput> images) const {
  const int height = config_.Padded(images[0].height);
  const int width = config_.Padded(images[0].width);
  const at::Tensor x =
      at::zeros({static_cast<int64_t>(images.size()), kChannels, height, width},
                at::TensorOptions(device_).dtype(options_.type))
          .contiguous(at::MemoryFormat::ChannelsLast);
  for (size_t i = 0; i < images.size(); ++i) {
    const model::ModelInput& image = images[i];
    const at::Tensor place =
        x[i].narrow(1, 0, image.height).narrow(2, 0, image.width);
    if (image.values != nullptr) {
      place.copy_(at::from_blob(const_cast<float*>(image.values),
                                {kChannels, image.height, image.width}));
      continue;
    }
    const at::Tensor pixels =
        at::from_blob(const_cast<uint8_t*>(image.pixels),
                      {PixelBytes(image.height, image.width)}, at::kByte)
            .to(device_);
    ops_.NormalizeImages(
        {{{pixels.const_data_ptr<uint8_t>(), image.height, image.width}},
         image.height,
         image.width,
         config_.mean,
         config_.std},
        place.unsqueeze(0));
  }
  return x;
}

at::Tensor DeviceContext::Enqueue(const GraphPlan::Key& key,
                                  const at::Tensor& pixels) const {
  model::ModelInput image;
  image.height = key.height;
  image.width = key.width;
  const std::vector<model::ModelInput> images(key.images, image);
  return network_.Answers(BatchOf(images, pixels), options_.fold_rows);
}

at::Tensor DeviceContext::Answer(const GraphPlan::Key& key) {
  switch (plan_.Next(key, options_.now())) {
    case GraphPlan::Step::kRun:
      break;
    case GraphPlan::Step::kCapture:
      return Capture(key);
    case GraphPlan::Step::kReplay:
      return graphs_.at(key)->Replay();
  }
  const absl::ReaderMutexLock lock(&capturing_);
  return Enqueue(key, pixels_);
}

at::Tensor DeviceContext::Capture(const GraphPlan::Key& key) {
  at::Tensor answers;
  absl::StatusOr<std::unique_ptr<DeviceGraph>> graph = nullptr;
  {
    const absl::MutexLock lock(&capturing_);
    // The batch is run before it is recorded. During a recording, libraries
    // cannot make handles or workspaces, load kernels or choose algorithms.
    answers = Enqueue(key, pixels_);
    graph = stream_->Record(pixels_, [this, key](const at::Tensor& pixels) {
      return Enqueue(key, pixels);
    });
  }
  if (graph.ok()) {
    graphs_[key] = *std::move(graph);
    plan_.DidCapture(key);
  } else {
    plan_.FailedToCapture(key, options_.now());
    options_.capture_failed(graph.status());
  }
  return answers;
}

DeviceContext::Results DeviceContext::CopyOut(const at::Tensor& answers,
                                              int count) {
  const at::Tensor wanted = answers.narrow(0, 0, count);
  if (!host_answers_.defined() || host_answers_.numel() < wanted.numel()) {
    host_answers_ = stream_->AllocateHost(wanted.numel(), at::kFloat);
  }
  const at::Tensor host =
      host_answers_.narrow(0, 0, wanted.numel()).view(wanted.sizes());
  stream_->CopyOut(wanted, host);
  return network_.ToResults(host);
}

}  // namespace sfmamba::engine
