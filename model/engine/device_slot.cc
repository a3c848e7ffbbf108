#include "model/engine/device_slot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ATen/ops/empty.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/zeros.h"
#include "c10/core/InferenceMode.h"
#include "model/engine/torch_errors.h"

namespace sfmamba::engine {
namespace {

// The most graphs of a slot. This suffices for all padded sizes up to 512
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

DeviceSlot::DeviceSlot(const Network& network, const model::ModelConfig& config,
                       std::unique_ptr<DeviceStream> stream, at::Device device,
                       absl::Mutex* capturing, Options options)
    : network_(network),
      config_(config),
      options_(std::move(options)),
      device_(device),
      capturing_(capturing),
      stream_(std::move(stream)),
      plan_(options_.graphs ? kMaxGraphs : 0) {}

absl::Status DeviceSlot::Run(absl::Span<const model::ModelInput> images,
                             absl::Span<model::Result> results,
                             model::RunInfo* info) {
  absl::Status failed;
  try {
    const c10::InferenceMode inference;
    const auto scope = stream_->Enter();
    RunOrThrow(images, results, info);
    return absl::OkStatus();
  } catch (...) {
    failed = CaughtError();
  }
  health_.Update(stream_->Check());
  return failed;
}

void DeviceSlot::RunOrThrow(absl::Span<const model::ModelInput> images,
                            absl::Span<model::Result> results,
                            model::RunInfo* info) {
  const bool uint8 = std::all_of(images.begin(), images.end(), IsUint8);
  if (uint8 && network_.classifies() && AreAlike(config_, images)) {
    RunPixels(images, results, info);
    return;
  }
  std::vector<heads::ImageInfo> infos;
  for (const model::ModelInput& image : images) infos.push_back(ToInfo(image));
  const absl::ReaderMutexLock lock(capturing_);
  if (uint8) CopyIn(images, BytesOf(images));
  const ops::ImageBatch x =
      uint8 ? BatchOf(images, pixels_) : ops::ImageBatch(FromMemory(images));
  std::vector<model::Result> batch =
      network_.Forward(x, options_.fold_rows, infos);
  std::move(batch.begin(), batch.end(), results.begin());
  info->padded_images += static_cast<int>(images.size());
}

void DeviceSlot::RunPixels(absl::Span<const model::ModelInput> images,
                           absl::Span<model::Result> results,
                           model::RunInfo* info) {
  // A requested folding must divide the sequences, so the batch is not padded.
  const int count = static_cast<int>(images.size());
  const GraphPlan::Key key = {
      options_.fold_rows > 0 ? count : PaddedBatchSize(count), images[0].height,
      images[0].width};
  CopyIn(images, key.images * PixelBytes(key.height, key.width));
  CopyOut(Answer(key), results);
  info->padded_images += key.images;
  info->device_time += stream_->ComputeTime();
}

void DeviceSlot::Reserve(int64_t bytes) {
  if (pixels_.defined() && pixels_.numel() >= bytes) return;
  stream_->Wait();
  graphs_.clear();  // Graphs contain the old address.
  plan_.Reset();
  pixels_ = at::Tensor();  // Frees its memory before more is allocated.
  host_pixels_ = stream_->AllocateHost(bytes, at::kByte);
  pixels_ = stream_->AllocateDevice(bytes, at::kByte);
}

void DeviceSlot::CopyIn(absl::Span<const model::ModelInput> images,
                        int64_t bytes) {
  Reserve(bytes);
  uint8_t* to = host_pixels_.data_ptr<uint8_t>();
  int64_t used = 0;
  for (const model::ModelInput& image : images) {
    const int64_t size = PixelBytes(image.height, image.width);
    std::memcpy(to + used, image.pixels, size);
    used += size;
  }
  std::memset(to + used, 0, bytes - used);
  stream_->CopyIn(host_pixels_.narrow(0, 0, bytes),
                  pixels_.narrow(0, 0, bytes));
}

ops::ImageBatch DeviceSlot::BatchOf(absl::Span<const model::ModelInput> images,
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

at::Tensor DeviceSlot::FromMemory(
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
    ops::DeviceOpsOf(x)->NormalizeImages(
        {{{pixels.const_data_ptr<uint8_t>(), image.height, image.width}},
         image.height,
         image.width,
         config_.mean,
         config_.std},
        place.unsqueeze(0));
  }
  return x;
}

at::Tensor DeviceSlot::Enqueue(const GraphPlan::Key& key,
                               const at::Tensor& pixels) const {
  model::ModelInput image;
  image.height = key.height;
  image.width = key.width;
  const std::vector<model::ModelInput> images(key.images, image);
  return network_.Answers(BatchOf(images, pixels), options_.fold_rows);
}

at::Tensor DeviceSlot::Answer(const GraphPlan::Key& key) {
  switch (plan_.Next(key, options_.now())) {
    case GraphPlan::Step::kRun:
      break;
    case GraphPlan::Step::kCapture:
      return Capture(key);
    case GraphPlan::Step::kReplay:
      return graphs_.at(key)->Replay();
  }
  const absl::ReaderMutexLock lock(capturing_);
  return Enqueue(key, pixels_);
}

at::Tensor DeviceSlot::Capture(const GraphPlan::Key& key) {
  at::Tensor answers;
  absl::StatusOr<std::unique_ptr<DeviceGraph>> graph = nullptr;
  {
    const absl::MutexLock lock(capturing_);
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

void DeviceSlot::CopyOut(const at::Tensor& answers,
                         absl::Span<model::Result> results) {
  const at::Tensor wanted = answers.narrow(0, 0, results.size());
  if (!host_answers_.defined() || host_answers_.numel() < wanted.numel()) {
    host_answers_ = stream_->AllocateHost(wanted.numel(), at::kFloat);
  }
  const at::Tensor host =
      host_answers_.narrow(0, 0, wanted.numel()).view(wanted.sizes());
  stream_->CopyOut(wanted, host);
  std::vector<model::Result> batch = network_.ToResults(host);
  std::move(batch.begin(), batch.end(), results.begin());
}

}  // namespace sfmamba::engine
