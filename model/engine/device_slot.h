#ifndef SFMAMBA_MODEL_ENGINE_DEVICE_SLOT_H_
#define SFMAMBA_MODEL_ENGINE_DEVICE_SLOT_H_

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "model/engine/batch_slot.h"
#include "model/engine/device_stream.h"
#include "model/engine/graph_plan.h"
#include "model/engine/network.h"
#include "model/layers/image_batch.h"
#include "model/ops/device_ops.h"

namespace sfmamba::engine {

// A slot on a GPU: pixels go there as uint8, are normalised there, pass the
// network as one batch, and a classifier's answers come back. Stream and
// buffers are the slot's alone, so that one slot copies while another computes.
//
// A classifier's batches are padded with black images and, from the second of
// their kind on, are replays of a recorded graph. A kind that cannot be
// recorded is run as it is and tried again later, see GraphPlan.
//
// Made, used and destroyed by one thread: see SlotThread.
class DeviceSlot : public BatchSlot {
 public:
  struct Options {
    at::ScalarType type = at::kFloat;  // What the network computes in.
    int fold_rows = 0;
    bool graphs = true;  // False: every batch is run as it is.
    // Told of each recording that failed, on the slot's thread.
    std::function<void(const absl::Status&)> capture_failed =
        [](const absl::Status&) {};
    std::function<absl::Time()> now = absl::Now;
  };

  // `network` is on the stream's device, and `capturing` is that device's
  // CaptureMutex. Both outlive the slot.
  DeviceSlot(const Network& network, const model::ModelConfig& config,
             std::unique_ptr<DeviceStream> stream, at::Device device,
             absl::Mutex* capturing, Options options);

  absl::Status Run(absl::Span<const model::ModelInput> images,
                   absl::Span<model::Result> results,
                   model::RunInfo* info) override;
  absl::Status health() const override { return health_; }

 private:
  // These throw. RunPixels takes a classifier's uint8 images of one size.
  void RunOrThrow(absl::Span<const model::ModelInput> images,
                  absl::Span<model::Result> results, model::RunInfo* info);
  void RunPixels(absl::Span<const model::ModelInput> images,
                 absl::Span<model::Result> results, model::RunInfo* info);
  // Of the first `bytes` of pixels_, filled from the images, zeros behind them.
  void CopyIn(absl::Span<const model::ModelInput> images, int64_t bytes);
  void Reserve(int64_t bytes);
  // The network's input: images that lie in `pixels`, one after another, with
  // the sizes of `images`; or images of either kind in the CPU's memory.
  layers::ImageBatch BatchOf(absl::Span<const model::ModelInput> images,
                             const at::Tensor& pixels) const;
  at::Tensor FromMemory(absl::Span<const model::ModelInput> images) const;
  // Enqueues a batch that lies in pixels_ or takes its graph.
  at::Tensor Answer(const GraphPlan::Key& key);
  // Enqueues it, then records it for the next of its kind.
  at::Tensor Capture(const GraphPlan::Key& key);
  // Of the images that lie in `pixels`.
  at::Tensor Enqueue(const GraphPlan::Key& key, const at::Tensor& pixels) const;
  // Waits for `answers` and makes results of the first of them.
  void CopyOut(const at::Tensor& answers, absl::Span<model::Result> results);

  const Network& network_;
  const model::ModelConfig& config_;
  const Options options_;
  const at::Device device_;
  absl::Mutex* const capturing_;
  const std::unique_ptr<DeviceStream> stream_;
  absl::Status health_;

  at::Tensor host_pixels_;   // uint8 [bytes], in the CPU's memory.
  at::Tensor pixels_;        // The same on the device.
  at::Tensor host_answers_;  // fp32 [values], in the CPU's memory.
  GraphPlan plan_;
  std::map<GraphPlan::Key, std::unique_ptr<DeviceGraph>> graphs_;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_SLOT_H_
