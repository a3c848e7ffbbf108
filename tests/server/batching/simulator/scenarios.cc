#include "tests/server/batching/simulator/scenarios.h"

#include <utility>

namespace sfmamba::batching {
namespace {

// Returns the number of pixels of an image divided by the number in 224 x 224.
double Area(const BatchKey& key) {
  return key.height * key.width / (224.0 * 224.0);
}

BatchCost CpuCost() {
  return [](const BatchKey& key, int images) {
    return absl::Milliseconds(10 + 8 * Area(key) * images);
  };
}

BatchCost DenseCost(double milliseconds) {
  return [milliseconds](const BatchKey& key, int images) {
    return absl::Milliseconds(milliseconds * Area(key) * images);
  };
}

// Returns the batch times of a GPU, which pads batches to multiples of 8
// images.
BatchCost GpuCost() {
  return [](const BatchKey& key, int images) {
    const int padded = (images + 7) / 8 * 8;
    return absl::Milliseconds(0.8 + 0.1 * Area(key) * padded);
  };
}

SimulatedModel Model(int max_batch_size, BatchCost cost) {
  SimulatedModel model;
  model.options.max_batch_size = max_batch_size;
  model.options.max_queue_items = 8192;
  model.cost = std::move(cost);
  return model;
}

Scenario Make(std::string name, std::vector<SimulatedModel> models,
              std::vector<RequestKind> kinds, int devices,
              absl::Duration length) {
  Scenario scenario;
  scenario.name = std::move(name);
  scenario.options.models = std::move(models);
  scenario.options.devices = devices;
  scenario.options.noise = 0.15;
  scenario.options.outliers = 0.005;
  scenario.kinds = std::move(kinds);
  scenario.length = length;
  const RequestKind& first = scenario.kinds[0];
  const SimulatedModel& model = scenario.options.models[first.model];
  scenario.period =
      4 * model.cost({first.side, first.side}, model.options.max_batch_size);
  scenario.capacity = Capacity(scenario.options, scenario.kinds);
  return scenario;
}

RequestKind Kind(double weight, const SimulatedModel& model, int number,
                 int side, double deadline_batches) {
  RequestKind kind;
  kind.weight = weight;
  kind.model = number;
  kind.side = side;
  kind.deadline =
      deadline_batches * model.cost({side, side}, model.options.max_batch_size);
  return kind;
}

Scenario OneSize(std::string name, SimulatedModel model,
                 double deadline_batches, absl::Duration length) {
  const RequestKind kind = Kind(1, model, 0, 224, deadline_batches);
  return Make(std::move(name), {std::move(model)}, {kind}, 1, length);
}

std::vector<RequestKind> MixedKinds(const SimulatedModel& model) {
  return {Kind(4, model, 0, 224, 6), Kind(2, model, 0, 160, 10),
          Kind(2, model, 0, 256, 5), Kind(1, model, 0, 288, 6),
          Kind(1, model, 0, 192, 8), Kind(1, model, 0, 320, 4)};
}

}  // namespace

Scenario CpuClassifier(double deadline_batches) {
  return OneSize("cpu", Model(8, CpuCost()), deadline_batches,
                 absl::Seconds(60));
}

Scenario GpuClassifier(double deadline_batches) {
  return OneSize("gpu", Model(32, GpuCost()), deadline_batches,
                 absl::Seconds(4));
}

Scenario CpuDense(double deadline_batches) {
  return OneSize("dense", Model(4, DenseCost(300)), deadline_batches,
                 absl::Seconds(600));
}

Scenario CpuMixed() {
  const SimulatedModel model = Model(8, CpuCost());
  return Make("cpu mixed", {model}, MixedKinds(model), 1, absl::Seconds(60));
}

Scenario GpuMixed() {
  const SimulatedModel model = Model(32, GpuCost());
  return Make("gpu mixed", {model}, MixedKinds(model), 4, absl::Seconds(2));
}

Scenario SeveralModels() {
  const SimulatedModel small = Model(32, GpuCost());
  const SimulatedModel large = Model(16, GpuCost());
  const SimulatedModel dense = Model(4, DenseCost(5));
  return Make("models", {small, large, dense},
              {Kind(6, small, 0, 224, 6), Kind(2, small, 0, 160, 8),
               Kind(2, large, 1, 384, 6), Kind(1, dense, 2, 512, 10)},
              4, absl::Seconds(4));
}

std::vector<SimulatedRequest> TraceOf(const Scenario& scenario,
                                      Arrivals arrivals, double load,
                                      uint32_t seed) {
  return MakeTrace(arrivals, load * scenario.capacity, scenario.length,
                   scenario.kinds, seed, scenario.period);
}

SimulationOptions InMode(const Scenario& scenario, BatchMode mode) {
  SimulationOptions options = scenario.options;
  for (SimulatedModel& model : options.models) model.options.mode = mode;
  return options;
}

SimulationOptions Fixed(const Scenario& scenario) {
  SimulationOptions options = scenario.options;
  options.is_fixed = true;
  options.admits = false;
  return options;
}

}  // namespace sfmamba::batching
