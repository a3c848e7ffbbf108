#ifndef SFMAMBA_MODEL_CUDA_SLOT_H_
#define SFMAMBA_MODEL_CUDA_SLOT_H_

#include <map>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/cuda/CUDAEvent.h"
#include "ATen/cuda/CUDAGraph.h"
#include "absl/synchronization/mutex.h"
#include "model/batch_slot.h"
#include "model/config.h"
#include "model/cuda_own_stream.h"
#include "model/device_ops.h"
#include "model/graph_plan.h"
#include "model/network.h"

namespace sfmamba {

// A slot on a GPU: pixels go there as uint8 from pinned memory, are normalised
// there, pass the network as one batch, and a classifier's answers come back to
// pinned memory; each of the three on a stream of its own, joined by events.
// Streams and buffers are the slot's alone, so that one slot copies while
// another computes.
//
// A classifier's batches are padded with black images and, from the second of
// their kind on, are replays of a captured graph.
//
// Made, used and destroyed by one thread: see SlotThread.
class CudaSlot : public BatchSlot {
 public:
  // `network` is on GPU `gpu`, and `capturing` that GPU's: who records a graph
  // holds it alone, who runs the network without holds it shared. For while one
  // slot records no other may wait for the whole device, as cuDNN does where it
  // measures its algorithms. Both outlive the slot.
  CudaSlot(const Network& network, const ModelConfig& config,
           at::ScalarType type, int fold_rows, int gpu, absl::Mutex* capturing);

  absl::Status Run(absl::Span<const ModelInput> images,
                   absl::Span<Result> results) override;
  absl::Status health() const override { return health_; }

 private:
  struct Graph {
    at::cuda::CUDAGraph graph;
    at::Tensor answers;  // Written by each replay.
  };

  // These throw. RunPixels takes a classifier's uint8 images of one size.
  void RunOrThrow(absl::Span<const ModelInput> images,
                  absl::Span<Result> results);
  void RunPixels(absl::Span<const ModelInput> images,
                 absl::Span<Result> results);
  // Of the first `bytes` of pixels_, filled from the images, zeros behind them.
  // compute_ waits for the copy.
  void CopyIn(absl::Span<const ModelInput> images, int64_t bytes);
  void Reserve(int64_t bytes);
  // The network's input, enqueued: each of `images`, which lie in pixels_, in
  // the upper left corner of a place of this size.
  at::Tensor Normalized(absl::Span<const ops::ImagePixels> images, int height,
                        int width) const;
  // The same of images in the CPU's memory: all uint8, or of either kind.
  at::Tensor FromPixels(absl::Span<const ModelInput> images);
  at::Tensor FromMemory(absl::Span<const ModelInput> images) const;
  // Enqueues a batch that lies in pixels_ or takes its graph.
  at::Tensor Answer(const GraphPlan::Key& key);
  // Enqueues it, then records it for the next of its kind.
  at::Tensor Capture(const GraphPlan::Key& key);
  // False if that cannot be recorded; nothing is enqueued in either case.
  bool Record(const GraphPlan::Key& key, Graph& graph);
  at::Tensor Enqueue(const GraphPlan::Key& key) const;
  // Waits for `answers` and makes results of the first of them.
  void CopyOut(const at::Tensor& answers, absl::Span<Result> results);
  // After an exception: whether the device is still there.
  void CheckDevice();

  const Network& network_;
  const ModelConfig& config_;
  const at::ScalarType type_;
  const int fold_rows_;
  const c10::Device device_;
  absl::Mutex* const capturing_;
  absl::Status health_;

  const CudaOwnStream copy_in_, compute_, copy_out_;
  at::cuda::CUDAEvent copied_in_, computed_, copied_out_;
  at::Tensor pinned_pixels_;   // uint8 [bytes], in the CPU's memory.
  at::Tensor pixels_;          // The same on the device.
  at::Tensor pinned_answers_;  // fp32 [values], in the CPU's memory.
  GraphPlan plan_;
  std::map<GraphPlan::Key, std::unique_ptr<Graph>> graphs_;
  // Shared by all of graphs_, of which one runs at a time.
  at::cuda::MempoolId_t graph_memory_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_CUDA_SLOT_H_
