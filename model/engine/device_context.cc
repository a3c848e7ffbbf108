#include "model/engine/device_context.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "ATen/ops/empty.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/full.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/capture_mutex.h"
#include "model/engine/guarded.h"
#include "model/engine/warm_up_input.h"

namespace sfmamba::engine {
namespace {

// Limits the number of graphs of a context for one type of inputs. 64 graphs
// suffice for all padded batch sizes up to 512 images of one image size, and
// for some batches of other image sizes. A graph takes a few MB.
constexpr int kMaxGraphs = 64;
constexpr int kChannels = 3;
// When this many bytes of a batch are collected, they are copied to the device.
// The copy overlaps with the preparation of the other images.
constexpr int64_t kLeastCopy = 1 << 20;

int64_t ValuesOf(int height, int width) {
  return int64_t{kChannels} * height * width;
}

int64_t ValuesOf(absl::Span<const model::ModelInput> images) {
  int64_t values = 0;
  for (const model::ModelInput& image : images) {
    values += ValuesOf(image.height, image.width);
  }
  return values;
}

bool IsUint8(const model::ModelInput& image) { return image.pixels != nullptr; }

// Returns whether all images have the same size, and whether this size is a
// multiple of pad_multiple, so that no image needs padding.
bool AreAlike(const model::ModelConfig& config,
              absl::Span<const model::ModelInput> images) {
  return std::all_of(images.begin(), images.end(),
                     [&](const model::ModelInput& image) {
                       return image.height == config.Padded(images[0].height) &&
                              image.width == config.Padded(images[0].width);
                     });
}

// Returns whether no image asks for a heat map, which graphs do not compute.
bool HaveNoHeatMaps(absl::Span<const model::ModelInput> images) {
  return std::none_of(
      images.begin(), images.end(), [](const model::ModelInput& image) {
        const auto* const options =
            std::get_if<model::ClassificationOptions>(&image.options);
        return options != nullptr && options->heat_map;
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
      pixels_(at::kByte, options_.graphs ? kMaxGraphs : 0),
      values_(at::kFloat, options_.graphs ? kMaxGraphs : 0) {}

DeviceContext::~DeviceContext() {
  // All objects that were used on the stream must be freed before the stream.
  for (Inputs* inputs : {&pixels_, &values_}) {
    inputs->graphs.clear();
    inputs->host = inputs->device = at::Tensor();
  }
  host_answers_ = at::Tensor();
  // The stream's destructor returns its memory to the device. libtorch refuses
  // this while another context captures a graph, and the memory would stay
  // allocated.
  const absl::ReaderMutexLock lock(&capturing_);
  stream_.reset();
}

absl::Status DeviceContext::Run(absl::Span<const model::ModelInput> images,
                                model::RunInfo* info, Done done) {
  absl::Status status = network_.Check(images, options_.fold_rows);
  if (!status.ok() || images.empty()) return status;
  status = CheckHealth();
  if (!status.ok()) return status;
  absl::StatusOr<Results> results = RunBatch(images, info);
  if (!results.ok()) {
    // If RunBatch() has found a permanent failure of the device, this failure
    // is returned instead.
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
  // A dense model has no graphs. Running one image is enough to load its
  // kernels.
  if (!network_.classifies()) return Run(input.Batch(1), &info, ignore);
  // The largest size comes first, so its buffers suffice for all other sizes.
  // Otherwise a larger batch would need new buffers, and Reserve() would
  // destroy all graphs that were captured with the old buffers.
  for (const int images : PaddedBatchSizes(max_images)) {
    if (images < min_images) break;
    // Run() returns an error if fold_rows does not divide the number of
    // sequences.
    if (options_.fold_rows > 0 &&
        network_.Sequences(images) % options_.fold_rows != 0) {
      continue;
    }
    absl::Status status = Run(input.Batch(images), &info, ignore);
    if (status.ok()) status = Run(input.BatchOfValues(images), &info, ignore);
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
  const auto pixels = std::count_if(images.begin(), images.end(), IsUint8);
  const bool uint8 = pixels == images.size();
  if ((uint8 || pixels == 0) && network_.classifies() &&
      HaveNoHeatMaps(images) && AreAlike(config_, images)) {
    return RunAlike(images, uint8 ? pixels_ : values_, info);
  }
  *info = {static_cast<int>(images.size()), {}};
  // Libraries may wait for the whole device. This is not allowed while another
  // context captures a graph.
  const absl::ReaderMutexLock lock(&capturing_);
  if (uint8) CopyIn(images, info->padded_images, pixels_);
  const ops::ImageBatch x = uint8 ? BatchOf(images, pixels_.device)
                                  : ops::ImageBatch(FromMemory(images));
  return network_.Forward(x, options_.fold_rows, ToInfos(images));
}

DeviceContext::Results DeviceContext::RunAlike(
    absl::Span<const model::ModelInput> images, Inputs& inputs,
    model::RunInfo* info) {
  // If fold_rows is set, it must divide the batch's number of sequences.
  // Padding changes this number. Therefore the batch is then not padded.
  const int count = static_cast<int>(images.size());
  const GraphPlan::Key key = {
      options_.fold_rows > 0 ? count : PaddedBatchSize(count), images[0].height,
      images[0].width};
  CopyIn(images, key.images, inputs);
  Results results = CopyOut(Answer(key, inputs), images);
  *info = {key.images, stream_->ComputeTime()};
  return results;
}

void DeviceContext::Reserve(int64_t size, Inputs& inputs) {
  if (inputs.device.defined() && inputs.device.numel() >= size) return;
  stream_->Wait();
  inputs.graphs.clear();  // The graphs contain the address of the old buffer.
  inputs.plan.Reset();
  inputs.device = at::Tensor();  // Frees its memory before more is allocated.
  inputs.host = stream_->AllocateHost(size, inputs.type);
  inputs.device = stream_->AllocateDevice(size, inputs.type);
}

void DeviceContext::CopyIn(absl::Span<const model::ModelInput> images,
                           int padded_images, Inputs& inputs) {
  const int64_t padding = (padded_images - images.size()) *
                          ValuesOf(images[0].height, images[0].width);
  const int64_t layouts = IsUint8(images[0]) ? padded_images : 0;
  Reserve(ValuesOf(images) + padding + layouts, inputs);
  auto* const host = static_cast<char*>(inputs.host.mutable_data_ptr());
  auto* const device = static_cast<char*>(inputs.device.mutable_data_ptr());
  const int64_t each = inputs.host.element_size();
  // `used` is the number of bytes collected so far. `sent` is the number of
  // these bytes whose copy to the device is enqueued.
  int64_t used = 0, sent = 0;
  const auto send = [&](const void* from) {
    if (used > sent) stream_->CopyIn(from, device + sent, used - sent);
    sent = used;
  };
  for (const model::ModelInput& image : images) {
    const int64_t bytes = each * ValuesOf(image.height, image.width);
    if (image.page_locked) {
      send(host + sent);
      used += bytes;
      send(image.pixels);
      continue;
    }
    const void* const from = image.pixels != nullptr
                                 ? static_cast<const void*>(image.pixels)
                                 : image.values;
    std::memcpy(host + used, from, bytes);
    used += bytes;
    // The device copies these bytes while the CPU prepares the next image.
    if (used - sent >= kLeastCopy) send(host + sent);
  }
  std::memset(host + used, 0, each * padding + layouts);
  used += each * padding;
  for (size_t i = 0; layouts > 0 && i < images.size(); ++i) {
    host[used + i] = images[i].planar;
  }
  used += layouts;
  send(host + sent);
  stream_->EndCopyIn();
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
    next += ValuesOf(image.height, image.width);
  }
  batch.planar = next;
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
                      {ValuesOf(image.height, image.width)}, at::kByte)
            .to(device_);
    const at::Tensor planar = at::full({1}, image.planar, pixels.options());
    ops_.NormalizeImages(
        {{{pixels.const_data_ptr<uint8_t>(), image.height, image.width}},
         image.height,
         image.width,
         config_.mean,
         config_.std,
         planar.const_data_ptr<uint8_t>()},
        place.unsqueeze(0));
  }
  return x;
}

at::Tensor DeviceContext::Enqueue(const GraphPlan::Key& key,
                                  const at::Tensor& input) const {
  if (input.scalar_type() == at::kFloat) {
    const std::vector<int64_t> shape = {key.images, kChannels, key.height,
                                        key.width};
    const at::Tensor x =
        at::empty(shape, at::TensorOptions(device_)
                             .dtype(options_.type)
                             .memory_format(at::MemoryFormat::ChannelsLast));
    // A single kernel changes both the order of the values and their type.
    x.copy_(input.narrow(0, 0, key.images * ValuesOf(key.height, key.width))
                .view(shape));
    return network_.Answers(x, options_.fold_rows);
  }
  model::ModelInput image;
  image.height = key.height;
  image.width = key.width;
  const std::vector<model::ModelInput> images(key.images, image);
  return network_.Answers(BatchOf(images, input), options_.fold_rows);
}

at::Tensor DeviceContext::Answer(const GraphPlan::Key& key, Inputs& inputs) {
  switch (inputs.plan.Next(key, options_.now())) {
    case GraphPlan::Step::kRun:
      break;
    case GraphPlan::Step::kCapture:
      return Capture(key, inputs);
    case GraphPlan::Step::kReplay:
      return inputs.graphs.at(key)->Replay();
  }
  const absl::ReaderMutexLock lock(&capturing_);
  return Enqueue(key, inputs.device);
}

at::Tensor DeviceContext::Capture(const GraphPlan::Key& key, Inputs& inputs) {
  at::Tensor answers;
  absl::StatusOr<std::unique_ptr<DeviceGraph>> graph = nullptr;
  {
    const absl::MutexLock lock(&capturing_);
    // The batch is first run without a capture. During a capture, libraries
    // cannot make handles or workspaces, load kernels or choose algorithms.
    answers = Enqueue(key, inputs.device);
    graph = stream_->Record(
        inputs.device,
        [this, key](const at::Tensor& input) { return Enqueue(key, input); });
  }
  if (graph.ok()) {
    inputs.graphs[key] = *std::move(graph);
    inputs.plan.DidCapture(key);
  } else {
    inputs.plan.FailedToCapture(key, options_.now());
    options_.capture_failed(graph.status());
  }
  return answers;
}

DeviceContext::Results DeviceContext::CopyOut(
    const at::Tensor& answers, absl::Span<const model::ModelInput> images) {
  const at::Tensor wanted = answers.narrow(0, 0, images.size());
  if (!host_answers_.defined() || host_answers_.numel() < wanted.numel()) {
    host_answers_ = stream_->AllocateHost(wanted.numel(), at::kFloat);
  }
  const at::Tensor host =
      host_answers_.narrow(0, 0, wanted.numel()).view(wanted.sizes());
  stream_->CopyOut(wanted, host);
  return network_.ToResults(host, ToInfos(images));
}

}  // namespace sfmamba::engine
