#ifndef SFMAMBA_MODEL_ENGINE_DEVICE_CONTEXT_H_
#define SFMAMBA_MODEL_ENGINE_DEVICE_CONTEXT_H_

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/steady_clock.h"
#include "model/config.h"
#include "model/engine/device_health.h"
#include "model/engine/device_runtime.h"
#include "model/engine/device_stream.h"
#include "model/engine/graph_plan.h"
#include "model/engine/network.h"
#include "model/execution_context.h"
#include "model/ops/device_ops.h"
#include "model/ops/image_batch.h"

namespace sfmamba::engine {

// A context on a GPU. It copies pixels to the GPU as uint8, normalises them
// there, and runs them through the network as one batch. It copies a
// classifier's answers back. Each context has its own stream and buffers, so
// that one context copies while another computes.
//
// A classifier's batches are padded with images of zeros, unless
// Options::fold_rows is set. This applies to batches of uint8 pixels and to
// batches of normalised fp32 values. After padding, two batches are of the same
// kind if they have the same number of images of the same size and type. The
// first batch of a kind is run, and a graph is captured for the kind. All later
// batches of the kind replay this graph. If the capture fails, the kernels of
// these batches are launched one by one. The capture is retried later, see
// GraphPlan. Batches with heat maps or with inputs of both types are neither
// padded nor captured.
class DeviceContext : public model::ExecutionContext {
 public:
  struct Options {
    at::ScalarType type = at::kFloat;  // The network's compute type.
    int fold_rows = 0;                 // See ModelOptions.
    bool graphs = true;                // If false, no graphs are used.
    // Called with the error of each failed capture, on the context's thread.
    std::function<void(const absl::Status&)> capture_failed =
        [](const absl::Status&) {};
    std::function<absl::Time()> now = base::SteadyNow;
  };

  // `network` is on GPU `gpu` of `runtime`. Permanent failures are reported to
  // `health`. All arguments except `options` must outlive the context.
  DeviceContext(const Network& network, const model::ModelConfig& config,
                const DeviceRuntime& runtime, int gpu, DeviceHealth* health,
                Options options);
  ~DeviceContext() override;

  absl::Status Run(absl::Span<const model::ModelInput> images,
                   model::RunInfo* info, Done done) override;

  // Runs batches of all padded sizes, with pixels and with values. The largest
  // size comes first, so that memory is allocated only once. A dense model's
  // inputs have too many sizes, so it runs only one image of a common size.
  absl::Status Prepare(int min_images, int max_images) override;

 private:
  using Results = std::vector<model::Result>;

  // The buffers and graphs for inputs of one type. `type` is kByte for uint8
  // pixels and kFloat for normalised fp32 values.
  struct Inputs {
    Inputs(at::ScalarType type, int graphs) : type(type), plan(graphs) {}

    const at::ScalarType type;
    at::Tensor host;    // [values], in the CPU's memory.
    at::Tensor device;  // [values], on the device.
    GraphPlan plan;
    std::map<GraphPlan::Key, std::unique_ptr<DeviceGraph>> graphs;
  };

  // Returns INTERNAL, naming the cause, once a device has failed permanently.
  absl::Status CheckHealth() const;
  // Returns one result for each image.
  absl::StatusOr<Results> RunBatch(absl::Span<const model::ModelInput> images,
                                   model::RunInfo* info);
  // Like RunBatch(), but these functions throw exceptions. RunAlike() may be
  // called only for a classifier's images of one type and size.
  Results RunOrThrow(absl::Span<const model::ModelInput> images,
                     model::RunInfo* info);
  Results RunAlike(absl::Span<const model::ModelInput> images, Inputs& inputs,
                   model::RunInfo* info);
  // Copies the images to `inputs`. All images must be of the type of `inputs`.
  // If there are fewer than `padded_images` images, adds images of zeros with
  // the first image's size. If the images are pixels, one byte per image
  // follows after all images. It tells whether the image is planar.
  void CopyIn(absl::Span<const model::ModelInput> images, int padded_images,
              Inputs& inputs);
  // Makes room for `size` values in both buffers of `inputs`. If the buffers
  // are too small, replaces them and destroys all graphs of `inputs`.
  void Reserve(int64_t size, Inputs& inputs);
  // Return the network's input. BatchOf() makes it from `pixels`, to which
  // CopyIn() has copied the images. FromMemory() makes it from images in the
  // CPU's memory, which may be values or pixels.
  ops::ImageBatch BatchOf(absl::Span<const model::ModelInput> images,
                          const at::Tensor& pixels) const;
  at::Tensor FromMemory(absl::Span<const model::ModelInput> images) const;
  // Enqueues the batch in `inputs` or replays its graph. Returns its answers.
  at::Tensor Answer(const GraphPlan::Key& key, Inputs& inputs);
  // Enqueues the batch in `inputs`, then captures a graph for its kind. Returns
  // the batch's answers.
  at::Tensor Capture(const GraphPlan::Key& key, Inputs& inputs);
  // Enqueues the batch in `input`, which contains pixels or values. Returns its
  // answers.
  at::Tensor Enqueue(const GraphPlan::Key& key, const at::Tensor& input) const;
  // Waits for `answers`. Returns the results of `images`, without the padding.
  Results CopyOut(const at::Tensor& answers,
                  absl::Span<const model::ModelInput> images);

  const Network& network_;
  const model::ModelConfig& config_;
  const Options options_;
  const ops::DeviceOps& ops_;
  const at::Device device_;
  absl::Mutex& capturing_;
  DeviceHealth& health_;
  std::unique_ptr<DeviceStream> stream_;

  Inputs pixels_, values_;
  at::Tensor host_answers_;  // fp32 [values], in the CPU's memory.
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_CONTEXT_H_
