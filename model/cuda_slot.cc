#include "model/cuda_slot.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "ATen/core/CachingHostAllocator.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/from_blob.h"
#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "c10/cuda/CUDACachingAllocator.h"
#include "c10/cuda/CUDAGuard.h"

namespace sfmamba {
namespace {

// Kinds of batches that a slot captures: all buckets of one input size up to
// 512 images, and room for a few sizes. A graph takes some MB.
constexpr int kMaxGraphs = 64;
constexpr int kChannels = 3;

int64_t PixelBytes(int height, int width) {
  return int64_t{kChannels} * height * width;
}

bool IsUint8(const ModelInput& image) { return image.pixels != nullptr; }

// Of one size, which is what the network sees.
bool AreAlike(const ModelConfig& config, absl::Span<const ModelInput> images) {
  return std::all_of(images.begin(), images.end(),
                     [&](const ModelInput& image) {
                       return image.height == config.Padded(images[0].height) &&
                              image.width == config.Padded(images[0].width);
                     });
}

// False if `body` throws.
template <typename Body>
bool Succeeds(Body body) {
  try {
    body();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

CudaSlot::CudaSlot(const Network& network, const ModelConfig& config,
                   at::ScalarType type, int fold_rows, int gpu,
                   absl::Mutex* capturing)
    : network_(network),
      config_(config),
      type_(type),
      fold_rows_(fold_rows),
      device_(at::kCUDA, static_cast<c10::DeviceIndex>(gpu)),
      capturing_(capturing),
      copy_in_(device_.index()),
      compute_(device_.index()),
      copy_out_(device_.index()),
      plan_(kMaxGraphs),
      graph_memory_(at::cuda::graph_pool_handle()) {}

absl::Status CudaSlot::Run(absl::Span<const ModelInput> images,
                           absl::Span<Result> results) {
  try {
    const c10::InferenceMode inference;
    const c10::cuda::CUDAStreamGuard stream(compute_.get());
    RunOrThrow(images, results);
    return absl::OkStatus();
  } catch (const c10::OutOfMemoryError& error) {
    CheckDevice();
    return absl::ResourceExhaustedError(error.what_without_backtrace());
  } catch (const c10::Error& error) {
    CheckDevice();
    return absl::InternalError(error.what_without_backtrace());
  } catch (const std::exception& error) {
    CheckDevice();
    return absl::InternalError(error.what());
  }
}

void CudaSlot::CheckDevice() {
  cudaError_t error = cudaSetDevice(device_.index());
  cudaGetLastError();  // Of a launch that was refused: over with this batch.
  // What remains is sticky: illegal addresses, failed launches, ECC errors. Not
  // the device is waited for, on which others may record a graph.
  for (const CudaOwnStream* stream : {&copy_in_, &compute_, &copy_out_}) {
    if (error == cudaSuccess) {
      error = cudaStreamSynchronize(stream->get().stream());
    }
  }
  if (error == cudaSuccess) return;
  health_ = absl::InternalError(
      absl::StrCat(device_.str(), ": ", cudaGetErrorString(error)));
}

void CudaSlot::RunOrThrow(absl::Span<const ModelInput> images,
                          absl::Span<Result> results) {
  const bool uint8 = std::all_of(images.begin(), images.end(), IsUint8);
  if (uint8 && network_.classifies() && AreAlike(config_, images)) {
    RunPixels(images, results);
    return;
  }
  std::vector<ImageInfo> infos;
  for (const ModelInput& image : images) infos.push_back(ToInfo(image));
  const absl::ReaderMutexLock lock(capturing_);
  const at::Tensor x = uint8 ? FromPixels(images) : FromMemory(images);
  std::vector<Result> batch = network_.Forward(x, fold_rows_, infos);
  std::move(batch.begin(), batch.end(), results.begin());
}

void CudaSlot::RunPixels(absl::Span<const ModelInput> images,
                         absl::Span<Result> results) {
  // A folding that was asked for wants the very number of sequences.
  const int count = static_cast<int>(images.size());
  const GraphPlan::Key key = {fold_rows_ > 0 ? count : GraphBucket(count),
                              images[0].height, images[0].width};
  CopyIn(images, key.images * PixelBytes(key.height, key.width));
  CopyOut(Answer(key), results);
}

void CudaSlot::Reserve(int64_t bytes) {
  if (pixels_.defined() && pixels_.numel() >= bytes) return;
  compute_.get().synchronize();
  graphs_.clear();  // They know the old address.
  plan_.Reset();
  // A pool that lost its last graph takes no other.
  graph_memory_ = at::cuda::graph_pool_handle();
  pixels_ = at::Tensor();  // First, for the memory.
  pinned_pixels_ = at::empty(
      {bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  pixels_ = at::empty({bytes}, at::TensorOptions(device_).dtype(at::kByte));
}

void CudaSlot::CopyIn(absl::Span<const ModelInput> images, int64_t bytes) {
  Reserve(bytes);
  uint8_t* to = pinned_pixels_.data_ptr<uint8_t>();
  int64_t used = 0;
  for (const ModelInput& image : images) {
    const int64_t size = PixelBytes(image.height, image.width);
    std::memcpy(to + used, image.pixels, size);
    used += size;
  }
  std::memset(to + used, 0, bytes - used);
  {
    const c10::cuda::CUDAStreamGuard stream(copy_in_.get());
    pixels_.narrow(0, 0, bytes)
        .copy_(pinned_pixels_.narrow(0, 0, bytes), /*non_blocking=*/true);
    copied_in_.record(copy_in_.get());
  }
  copied_in_.block(compute_.get());
}

at::Tensor CudaSlot::Normalized(absl::Span<const ops::ImagePixels> images,
                                int height, int width) const {
  const at::Tensor x =
      at::empty({static_cast<int64_t>(images.size()), kChannels, height, width},
                at::TensorOptions(device_).dtype(type_).memory_format(
                    at::MemoryFormat::ChannelsLast));
  ops::DeviceOpsOf(x)->NormalizeImages(images, config_.mean, config_.std, x);
  return x;
}

at::Tensor CudaSlot::FromPixels(absl::Span<const ModelInput> images) {
  int64_t bytes = 0;
  for (const ModelInput& image : images) {
    bytes += PixelBytes(image.height, image.width);
  }
  CopyIn(images, bytes);
  std::vector<ops::ImagePixels> copies;
  const uint8_t* next = pixels_.const_data_ptr<uint8_t>();
  for (const ModelInput& image : images) {
    copies.push_back({next, image.height, image.width});
    next += PixelBytes(image.height, image.width);
  }
  return Normalized(copies, config_.Padded(images[0].height),
                    config_.Padded(images[0].width));
}

at::Tensor CudaSlot::FromMemory(absl::Span<const ModelInput> images) const {
  const int height = config_.Padded(images[0].height);
  const int width = config_.Padded(images[0].width);
  const at::Tensor x =
      at::zeros({static_cast<int64_t>(images.size()), kChannels, height, width},
                at::TensorOptions(device_).dtype(type_))
          .contiguous(at::MemoryFormat::ChannelsLast);
  for (size_t i = 0; i < images.size(); ++i) {
    const ModelInput& image = images[i];
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
        {{pixels.const_data_ptr<uint8_t>(), image.height, image.width}},
        config_.mean, config_.std, place.unsqueeze(0));
  }
  return x;
}

at::Tensor CudaSlot::Enqueue(const GraphPlan::Key& key) const {
  std::vector<ops::ImagePixels> images;
  for (int64_t i = 0; i < key.images; ++i) {
    images.push_back({pixels_.const_data_ptr<uint8_t>() +
                          i * PixelBytes(key.height, key.width),
                      key.height, key.width});
  }
  return network_.Answers(Normalized(images, key.height, key.width),
                          fold_rows_);
}

at::Tensor CudaSlot::Answer(const GraphPlan::Key& key) {
  switch (plan_.Next(key)) {
    case GraphPlan::Step::kRun:
      break;
    case GraphPlan::Step::kCapture:
      return Capture(key);
    case GraphPlan::Step::kReplay: {
      Graph& graph = *graphs_.at(key);
      graph.graph.replay();
      return graph.answers;
    }
  }
  const absl::ReaderMutexLock lock(capturing_);
  return Enqueue(key);
}

at::Tensor CudaSlot::Capture(const GraphPlan::Key& key) {
  const absl::MutexLock lock(capturing_);
  // First as it is: while a graph is being recorded no library can make a
  // handle or a workspace, load a kernel or choose its algorithm.
  const at::Tensor answers = Enqueue(key);
  auto graph = std::make_unique<Graph>();
  if (Record(key, *graph)) {
    graphs_[key] = std::move(graph);
    plan_.DidCapture(key);
  } else {
    plan_.FailedToCapture(key);
  }
  return answers;
}

bool CudaSlot::Record(const GraphPlan::Key& key, Graph& graph) {
  const bool recorded = Succeeds([&] {
    // Other threads may allocate meanwhile.
    graph.graph.capture_begin(graph_memory_, cudaStreamCaptureModeThreadLocal);
    graph.answers = Enqueue(key);
  });
  // In any case, for the stream would else go on recording.
  const bool ended = Succeeds([&] { graph.graph.capture_end(); });
  if (recorded && ended) return true;
  if (!ended) {
    // What capture_end() did not come to: the allocators would go on asking
    // `graph`, which is about to end, whose memory they give.
    Succeeds([&] {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(device_.index(),
                                                         graph_memory_);
    });
    Succeeds([&] {
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(graph_memory_);
    });
  }
  cudaGetLastError();  // Of a launch: told by the result.
  graph_memory_ = at::cuda::graph_pool_handle();
  return false;
}

void CudaSlot::CopyOut(const at::Tensor& answers, absl::Span<Result> results) {
  const at::Tensor wanted = answers.narrow(0, 0, results.size());
  if (!pinned_answers_.defined() || pinned_answers_.numel() < wanted.numel()) {
    pinned_answers_ =
        at::empty({wanted.numel()},
                  at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
  }
  const at::Tensor host =
      pinned_answers_.narrow(0, 0, wanted.numel()).view(wanted.sizes());
  computed_.record(compute_.get());
  computed_.block(copy_out_.get());
  {
    const c10::cuda::CUDAStreamGuard stream(copy_out_.get());
    host.copy_(wanted, /*non_blocking=*/true);
    copied_out_.record(copy_out_.get());
  }
  copied_out_.synchronize();
  std::vector<Result> batch = network_.ToResults(host);
  std::move(batch.begin(), batch.end(), results.begin());
}

}  // namespace sfmamba
