#include "tests/server/batching/simulator/simulator.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/batching/device_turns.h"
#include "server/batching/reservation.h"
#include "tests/server/batching/simulator/fixed_queue.h"

namespace sfmamba::batching {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr absl::Duration kDefaultDeadline = absl::Seconds(30);

// Returns the time per image in the most efficient batch.
absl::Duration BestCost(const SimulatedModel& model, const BatchKey& key) {
  absl::Duration best = absl::InfiniteDuration();
  for (int n = 1; n <= model.options.max_batch_size; ++n) {
    best = std::min(best, model.cost(key, n) / n);
  }
  return best;
}

// `Queue` is BatchQueue or FixedQueue.
template <typename Queue>
class Simulator {
 public:
  Simulator(const SimulationOptions& options,
            const std::vector<SimulatedRequest>& trace)
      : options_(options),
        trace_(trace.begin(), trace.end()),
        random_(options.seed),
        devices_(options.devices),
        used_(options.models.size()) {
    for (size_t i = 0; i < trace.size(); ++i) arrivals_.emplace(trace[i].at, i);
    for (int i = 0; i < options.devices; ++i) {
      turns_.push_back(std::make_unique<DeviceTurns>(1));
    }
    for (const SimulatedModel& model : options.models) {
      auto& members = members_.emplace_back();
      std::vector<const DeviceTurns::Member*> devices;
      for (const auto& turns : turns_) {
        members.push_back(turns->Join());
        devices.push_back(members.back().get());
      }
      queues_.push_back(
          std::make_unique<Queue>(model.options, options.devices, devices));
      decoding_.emplace_back();
      rooms_.push_back(std::make_unique<QueueRoom>(
          QueueLimits{model.options.max_queue_items, 1}));
    }
    if (options.is_measured) Measure();
    result_.in_time_by_model.resize(options.models.size());
  }

  SimulationResult Run() {
    now_ = kStart;
    while (true) {
      EndBatches();
      Arrive();
      Decode();
      StartBatches();
      const absl::Time next = NextEvent();
      if (next == absl::InfiniteFuture()) break;
      now_ = std::max(next, now_ + absl::Nanoseconds(1));
    }
    for (const auto& queue : queues_) result_.left += queue->size();
    if (in_time_latency_ > absl::ZeroDuration()) {
      result_.latency = in_time_latency_ / result_.in_time;
    }
    return result_;
  }

 private:
  struct Device {
    std::optional<Batch> batch;
    int model = 0;
    absl::Time start, end = absl::InfiniteFuture();
  };

  // An image that is being decoded.
  struct Decoding {
    absl::Time decoded;  // When decoding ends.
    int id = 0;
    Reservation room;
  };

  // Gives each queue the measurements that a server makes when it loads a
  // model. Batches of 1, 2, 4, ... images are measured.
  void Measure() {
    std::map<std::pair<int, BatchKey>, bool> seen;
    for (const SimulatedRequest& request : trace_) {
      if (!seen.emplace(std::make_pair(request.model, request.key), true)
               .second) {
        continue;
      }
      const SimulatedModel& model = options_.models[request.model];
      std::vector<BatchTime> times;
      const int max = model.options.max_batch_size;
      for (int n = 1; n <= max; n = n < max && 2 * n > max ? max : 2 * n) {
        const absl::Duration median =
            model.cost(request.key, n) * (n > 1 ? options_.measured_factor : 1);
        times.push_back({request.key, n, median,
                         median * std::exp(1.645 * options_.noise)});
      }
      queues_[request.model]->profile().Import(times, kStart);
    }
  }

  void Error(std::string error) {
    if (result_.errors.size() < 10) result_.errors.push_back(std::move(error));
  }

  absl::Time Deadline(const SimulatedRequest& request) const {
    return kStart + request.at + std::min(request.deadline, kDefaultDeadline);
  }

  void EndBatches() {
    for (Device& device : devices_) {
      if (device.end > now_) continue;
      queues_[device.model]->Ran(device.batch->number, now_);
      for (const BatchTask& task : device.batch->tasks) {
        if (now_ <= task.finish_by) {
          ++result_.in_time;
          result_.useful +=
              BestCost(options_.models[device.model], device.batch->key);
          ++result_.in_time_by_model[device.model];
          ++result_.clients[trace_[Id(task)].client].in_time;
          in_time_latency_ += now_ - kStart - trace_[Id(task)].at;
        } else {
          ++result_.late;
        }
        SendAgain(Id(task));
      }
      result_.end = now_ - kStart;
      device = Device();
    }
  }

  void Arrive() {
    while (!arrivals_.empty() && kStart + arrivals_.begin()->first <= now_) {
      const int id = arrivals_.begin()->second;
      arrivals_.erase(arrivals_.begin());
      const SimulatedRequest& request = trace_[id];
      ++result_.offered;
      ++result_.clients[request.client].offered;
      Reservation room;
      if (IsAdmitted(request, &room)) {
        decoding_[request.model].push_back(
            {kStart + request.at + options_.decode, id, std::move(room)});
      } else {
        ++result_.refused;
        ++result_.clients[request.client].refused;
        SendAgain(id);
      }
    }
  }

  void SendAgain(int id) {
    SimulatedRequest request = trace_[id];
    if (!request.again.has_value()) return;
    request.at = now_ - kStart + *request.again;
    if (request.at > request.until) return;
    if (request.is_new_each_time) {
      request.client = absl::StrCat("new ", trace_.size());
    }
    arrivals_.emplace(request.at, static_cast<int>(trace_.size()));
    trace_.push_back(std::move(request));
  }

  // Returns true if the request is admitted. Reserves `room` for its image.
  bool IsAdmitted(const SimulatedRequest& request, Reservation* room) {
    const Queue& queue = *queues_[request.model];
    const int decoding = static_cast<int>(decoding_[request.model].size());
    if (queue.size() + decoding >=
        options_.models[request.model].options.max_queue_items) {
      return false;
    }
    if (!options_.admits) {
      *room = *rooms_[request.model]->Take(1, 0, request.client);
      return true;
    }
    AdmissionRequest admission;
    admission.key = request.key;
    admission.priority = request.priority;
    if (request.deadline != absl::InfiniteDuration()) {
      admission.deadline = Deadline(request);
    }
    admission.decoding = admission.own_decoding = decoding;
    QueueRoom& rooms = *rooms_[request.model];
    admission.client = request.client;
    *room = *rooms.Take(1, 0, request.client);
    if (!request.client.empty()) {
      const int64_t held = rooms.clients().HeldBy(request.client) - 1;
      admission.own_decoding =
          static_cast<int>(held - queue.CountOf(request.client));
      admission.other_clients = rooms.clients().clients() - 1;
    }
    admission.decode = options_.decode;
    const AdmissionEstimate estimate = queue.Estimate(admission, now_);
    return estimate.IsInTime(admission) &&
           estimate.drained <= now_ + options_.drain;
  }

  static int Id(const BatchTask& task) { return task.image.original_width; }

  void Decode() {
    for (size_t model = 0; model < queues_.size(); ++model) {
      auto& decoding = decoding_[model];
      while (!decoding.empty() && decoding.front().decoded <= now_) {
        Push(decoding.front().id, std::move(decoding.front().room));
        decoding.pop_front();
      }
    }
  }

  void Push(int id, Reservation room) {
    const SimulatedRequest& request = trace_[id];
    BatchTask task;
    task.image.pixels = std::vector<uint8_t>(1);
    task.image.original_width = id;
    task.key = request.key;
    task.priority = request.priority;
    task.reservation = std::move(room);
    task.deadline = task.finish_by = Deadline(request);
    queues_[request.model]->Push(std::move(task), now_);
  }

  void Leave(const BatchTask& task) {
    if (!left_queue_.insert(Id(task)).second) {
      Error(absl::StrCat("task ", Id(task), " left twice"));
    }
  }

  void Drop(const std::vector<BatchTask>& tasks) {
    for (const BatchTask& task : tasks) {
      Leave(task);
      ++result_.dropped;
      SendAgain(Id(task));
    }
  }

  // Starts due batches on all idle devices.
  void StartBatches() {
    for (size_t i = 0; i < devices_.size(); ++i) {
      while (!devices_[i].batch.has_value()) {
        const std::optional<int> model = NextModel(i);
        if (!model.has_value()) return;
        Start(*model, i);
      }
    }
  }

  // Returns the model that goes next on the device, among models with a due
  // batch. ClientTurns chooses the model. A FixedQueue does not use
  // ClientTurns, so the model that has used the least device time then goes
  // next.
  std::optional<int> NextModel(size_t device) {
    std::vector<int> models;
    for (size_t model = 0; model < queues_.size(); ++model) {
      Drop(queues_[model]->TakeDropped(now_));
      if (queues_[model]->Due(now_) <= now_) models.push_back(model);
    }
    if (models.empty()) return std::nullopt;
    std::stable_sort(models.begin(), models.end(),
                     [this](int a, int b) { return used_[a] < used_[b]; });
    std::vector<QueueId> queues;
    for (int model : models) {
      queues.push_back(members_[model][device]->queue());
    }
    return models[members_[models[0]][device]->With(
        [&](const ClientTurns& turns) { return turns.Next(queues); })];
  }

  void Start(int model, size_t i) {
    std::optional<Batch> batch = queues_[model]->PopBatch(
        now_, absl::ZeroDuration(), members_[model][i].get());
    if (!batch.has_value()) {
      Error("a batch was due and none came");
      devices_[i].end = now_;
      return;
    }
    Drop(std::exchange(batch->dropped, {}));
    if (batch->tasks.empty()) return;
    const int images = static_cast<int>(batch->tasks.size());
    absl::Duration took = options_.models[model].cost(batch->key, images);
    took *= std::lognormal_distribution<double>(0, options_.noise)(random_);
    if (std::bernoulli_distribution(options_.outliers)(random_)) took *= 3;
    Check(model, *batch, took);
    for (BatchTask& task : batch->tasks) task.reservation.Release();
    devices_[i] = {std::move(batch), model, now_, now_ + took};
    ++result_.batches;
    result_.busy += took;
    if (images == 1) result_.in_small += took;
    // An idle model must not save up device time, because it would then go
    // before the other models for long. Its used time is therefore raised until
    // it is at most one batch below the highest used time of all models.
    const absl::Duration least =
        *std::max_element(used_.begin(), used_.end()) - took;
    used_[model] = std::max(used_[model], least) + took;
  }

  // Records a batch that takes `took`, and checks its size and keys.
  void Check(int model, const Batch& batch, absl::Duration took) {
    RanBatch& ran = result_.ran_batches.emplace_back();
    ran.start = now_ - kStart;
    const BatchOptions& options = options_.models[model].options;
    if (static_cast<int>(batch.tasks.size()) > options.max_batch_size) {
      Error(absl::StrCat("a batch of ", batch.tasks.size()));
    }
    for (const BatchTask& task : batch.tasks) {
      Leave(task);
      if (!(task.key == batch.key)) Error("keys were mixed");
      result_.longest_wait =
          std::max(result_.longest_wait, now_ - task.submitted);
      ClientResult& client = result_.clients[trace_[Id(task)].client];
      client.longest_wait =
          std::max(client.longest_wait, now_ - task.submitted);
      const absl::Duration own = took / batch.tasks.size();
      client.device += own;
      ran.device[trace_[Id(task)].client] += own;
      result_.order.push_back(Id(task));
      ++result_.ran[static_cast<int>(task.priority)];
    }
  }

  absl::Time NextEvent() {
    absl::Time next = absl::InfiniteFuture();
    bool any_free = false;
    for (const Device& device : devices_) {
      next = std::min(next, device.end);
      any_free = any_free || !device.batch.has_value();
    }
    if (!arrivals_.empty()) {
      next = std::min(next, kStart + arrivals_.begin()->first);
    }
    for (size_t model = 0; model < queues_.size(); ++model) {
      if (!decoding_[model].empty()) {
        next = std::min(next, decoding_[model].front().decoded);
      }
      if (!any_free) continue;
      const Queue& queue = *queues_[model];
      const absl::Time due = queue.Due(now_);
      next = std::min(next, due);
      const absl::Duration delay =
          options_.models[model].options.max_queue_delay;
      absl::Time oldest = absl::InfiniteFuture();
      for (const server::Priority priority : server::kPrioritiesInOrder) {
        oldest = std::min(oldest, queue.waiting(priority).oldest);
      }
      if (due > now_ && queue.size() > 0 && due > oldest + delay) {
        Error("a task waits longer than max_queue_delay for a free device");
      }
    }
    return next;
  }

  const SimulationOptions& options_;
  std::deque<SimulatedRequest> trace_;  // Grows when images are sent again.
  std::mt19937 random_;
  absl::Time now_;
  std::set<std::pair<absl::Duration, int>> arrivals_;  // Future arrivals.
  std::vector<Device> devices_;
  std::vector<absl::Duration> used_;                 // Device time, by model.
  std::vector<std::unique_ptr<DeviceTurns>> turns_;  // By device.
  // Indexed by model, then by device.
  std::vector<std::vector<std::unique_ptr<DeviceTurns::Member>>> members_;
  // Indexed by model. Declared before the queues, because waiting tasks hold
  // reservations.
  std::vector<std::unique_ptr<QueueRoom>> rooms_;
  std::vector<std::unique_ptr<Queue>> queues_;  // By model.
  std::vector<std::deque<Decoding>> decoding_;  // By model.
  std::set<int> left_queue_;                    // By number.
  absl::Duration in_time_latency_;
  SimulationResult result_;
};

}  // namespace

SimulationResult Simulate(const SimulationOptions& options,
                          const std::vector<SimulatedRequest>& trace) {
  if (options.is_fixed) return Simulator<FixedQueue>(options, trace).Run();
  return Simulator<BatchQueue>(options, trace).Run();
}

double Capacity(const SimulationOptions& options,
                const std::vector<RequestKind>& kinds) {
  double weights = 0, seconds = 0;
  for (const RequestKind& kind : kinds) {
    const SimulatedModel& model = options.models[kind.model];
    weights += kind.weight;
    seconds += kind.weight *
               absl::ToDoubleSeconds(BestCost(model, {kind.side, kind.side}));
  }
  return options.devices * weights / seconds;
}

}  // namespace sfmamba::batching
