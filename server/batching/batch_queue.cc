#include "server/batching/batch_queue.h"

#include <algorithm>
#include <utility>

namespace sfmamba::batching {

namespace {

using KeyTasks = WaitingTasks::KeyTasks;
using TaskId = WaitingTasks::TaskId;

// The minimum device time charged for a batch.
constexpr absl::Duration kLeastCost = absl::Microseconds(1);

// If tasks of lower priority classes join a batch, the predicted duration of
// the batch may increase at most by this factor.
constexpr int kMostDelay = 2;

// A trial is a batch that is larger than the estimates recommend. The extra
// time of a trial is its duration minus the time for the same images in batches
// of the best size (BatchCurve::best_size()). In the long run, the extra time
// of all trials is at most this fraction of the time of all other batches.
constexpr double kTrialShare = 0.01;

// The weight of the newest batch in the moving average turn_wait_.
constexpr double kTurnWaitRate = 0.2;

// Returns true if a busy queue should reduce a batch from `images` to `fewer`
// images. In the smaller batch, `saved` images meet deadlines that they would
// miss in the larger batch. The remaining images need a second batch. The two
// batches together take longer than the larger batch. In this extra time, the
// device could run N other images in batches of the best size. Returns true if
// N is at most `saved`.
bool PaysToCut(const BatchCurve& curve, int images, int fewer, int saved) {
  const absl::Duration cost =
      curve.Median(fewer) + curve.Median(images - fewer) - curve.Median(images);
  const int best = curve.best_size();
  return saved * curve.Median(best) >= cost * best;
}

// Returns how many images a batch should have. The batch is for the priority
// class `first`, but tasks of lower classes may fill it up. The result is
// `images`, or less if the tasks of lower classes would lengthen the batch too
// much. See kMostDelay.
int CountWithMates(const KeyTasks& waiting, const BatchCurve& curve,
                   server::Priority first, int images) {
  int own = 0;
  for (int i = 0; i <= static_cast<int>(first); ++i) {
    own += waiting.lines[i].size();
  }
  own = std::min(own, images);
  const absl::Duration most = curve.Median(std::max(own, 1)) * kMostDelay;
  while (images > own && curve.Median(images) > most) --images;
  return images;
}

}  // namespace

BatchQueue::BatchQueue(const BatchOptions& options, int slots,
                       std::vector<const DeviceTurns::Member*> devices)
    : options_(options),
      slots_(slots),
      profile_(options.max_batch_size),
      devices_(std::move(devices)) {
  if (!devices_.empty()) return;
  own_turns_ = std::make_unique<DeviceTurns>(slots);
  own_device_ = own_turns_->Join();
  devices_ = {own_device_.get()};
}

absl::Duration BatchQueue::Cost(const BatchKey& key, int images) const {
  const BatchCurve& curve = profile_.Curve(key);
  if (curve.is_known()) return std::max(kLeastCost, curve.Median(images));
  absl::Duration largest = kLeastCost;
  for (const auto& [other, known] : profile_.curves()) {
    largest = std::max(largest, known.Median(known.best_size()));
  }
  return largest;
}

LineId BatchQueue::LineOn(const DeviceTurns::Member& device,
                          const BatchKey& key,
                          server::Priority priority) const {
  return {device.queue(), priority, key};
}

void BatchQueue::SetFirst(const BatchKey& key, server::Priority priority,
                          const std::string& client) {
  const WaitingTasks::Tasks& tasks =
      waiting_.keys().at(key).line(priority).Of(client);
  const absl::Duration batch = Cost(key, profile_.Curve(key).best_size());
  for (const DeviceTurns::Member* device : devices_) {
    const LineId line = LineOn(*device, key, priority);
    device->With([&](ClientTurns& turns) {
      if (tasks.empty()) {
        turns.Remove(line, client);
      } else {
        turns.SetFirst(line, client, tasks.begin()->first, batch);
      }
    });
  }
}

void BatchQueue::Push(BatchTask task, absl::Time now) {
  task.submitted = now;
  task.came_after = batches_;
  const std::string client = task.client();
  const absl::Time order_by = std::min(task.deadline, task.finish_by);
  const TaskId id = waiting_.Add(std::move(task), order_by);
  const KeyTasks& waiting = waiting_.keys().at(id.key);
  if (waiting.line(id.priority).Of(client).begin()->first == id.urgency) {
    SetFirst(id.key, id.priority, client);
  }
}

BatchTask BatchQueue::Take(const TaskId& id) {
  BatchTask task = waiting_.Take(id);
  SetFirst(id.key, id.priority, task.client());
  return task;
}

std::vector<BatchTask> BatchQueue::TakeDropped(absl::Time now) {
  std::vector<BatchTask> dropped = waiting_.TakeExpired(now);
  if (now - cancels_taken_ >= kCancelPeriod) {
    cancels_taken_ = now;
    for (BatchTask& task : waiting_.TakeCancelled()) {
      dropped.push_back(std::move(task));
    }
  }
  for (const BatchTask& task : dropped) {
    SetFirst(task.key, task.priority, task.client());
  }
  return dropped;
}

int BatchQueue::CountOf(absl::string_view client) const {
  int count = 0;
  for (const auto& [key, waiting] : waiting_.keys()) {
    for (const WaitingTasks::Line& line : waiting.lines) {
      count += static_cast<int>(line.Of(client).size());
    }
  }
  return count;
}

WaitingLine BatchQueue::LineOf(const BatchKey& key, server::Priority priority,
                               absl::Time now) const {
  const KeyTasks& waiting = waiting_.keys().at(key);
  const BatchTask& first = *waiting.line(priority).order().begin()->second;
  WaitingLine line;
  line.curve = &profile_.Curve(key);
  line.tasks = waiting.size();
  line.oldest = waiting.arrivals.begin()->second;
  line.start_by = first.deadline;
  line.finish_by = first.finish_by;
  line.gap = waiting.gap.Mean(now);
  return line;
}

absl::Time BatchQueue::Due(absl::Time now) const {
  if (draining_ && size() > 0) return absl::InfinitePast();
  absl::Time due = absl::InfiniteFuture();
  for (const auto& [key, waiting] : waiting_.keys()) {
    for (const server::Priority priority : server::kPrioritiesInOrder) {
      if (waiting.line(priority).empty()) continue;
      due = std::min(due, LeaveAt(options_, LineOf(key, priority, now)));
    }
  }
  return due <= now ? absl::InfinitePast() : due;
}

std::vector<TaskId> BatchQueue::FirstTasks(const DeviceTurns::Member& device,
                                           const BatchKey& key,
                                           server::Priority first,
                                           int count) const {
  std::vector<TaskId> ids;
  const absl::Duration cost = Cost(key, count) / count;
  const auto add = [&](server::Priority priority, ClientTurns& turns) {
    const WaitingTasks::Line& line = waiting_.keys().at(key).line(priority);
    ClientTurns::Filling filling(&turns, LineOn(device, key, priority), cost);
    absl::flat_hash_map<absl::string_view, WaitingTasks::Tasks::const_iterator>
        nexts;
    while (static_cast<int>(ids.size()) < count) {
      const std::string* client = filling.Next();
      if (client == nullptr) return;
      const WaitingTasks::Tasks& tasks = line.Of(*client);
      auto& next = nexts.try_emplace(*client, tasks.begin()).first->second;
      ids.push_back({key, priority, (next++)->first});
      filling.Pick(next == tasks.end() ? std::nullopt
                                       : std::optional<Urgency>(next->first));
    }
  };
  device.With([&](ClientTurns& turns) {
    add(first, turns);
    for (const server::Priority priority : server::kPrioritiesInOrder) {
      if (priority != first) add(priority, turns);
    }
  });
  return ids;
}

std::optional<Batch> BatchQueue::PopBatch(absl::Time now, absl::Duration waited,
                                          const DeviceTurns::Member* device) {
  usual_clients_ = UsualClients(now, active_clients());
  clients_counted_ = now;
  if (device == nullptr) device = devices_[0];
  Batch batch;
  batch.dropped = TakeDropped(now);
  ScheduleOptions schedule = options_;
  if (draining_) schedule.max_queue_delay = absl::ZeroDuration();
  const auto classes = device->With(
      [](const ClientTurns& turns) { return turns.ClassesInTurn(); });
  for (const server::Priority priority : classes) {
    const auto in_turn = device->With([&](const ClientTurns& turns) {
      return turns.LinesInTurn(device->queue(), priority);
    });
    std::vector<WaitingLine> lines;
    for (const ClientTurns::Turn& turn : in_turn) {
      lines.push_back(LineOf(turn.key, priority, now));
      lines.back().is_overdue = turn.is_overdue;
    }
    const Decision decision =
        Decide(schedule, lines, now, trial_debt_ <= absl::ZeroDuration());
    if (decision.line < 0) continue;
    batch.key = in_turn[decision.line].key;
    batch.trigger = decision.trigger;
    if (draining_ && batch.trigger == BatchTrigger::kDelay) {
      batch.trigger = BatchTrigger::kDrain;
    }
    BatchCharge charge = Fill(*device, priority, decision, now, &batch);
    if (!batch.tasks.empty()) {
      batch.number = ++batches_;
      last_key_ = batch.key;
      const int count = static_cast<int>(batch.tasks.size());
      Running& running = running_[batch.number];
      running.key = batch.key;
      running.images = count;
      running.start = now;
      running.waited = waited;
      running.predicted = profile_.Curve(batch.key).Median(count);
      running.device = device;
      running.charge = std::move(charge);
      if (decision.is_trial) {
        running.trial_cost = TrialCost(running, running.predicted);
        trial_debt_ += *running.trial_cost;
      }
    }
    return batch;
  }
  if (batch.dropped.empty()) return std::nullopt;
  return batch;
}

absl::Duration BatchQueue::TrialCost(const Running& trial,
                                     absl::Duration took) const {
  const BatchCurve& curve = profile_.Curve(trial.key);
  const int best = curve.best_size();
  return std::max(absl::ZeroDuration(),
                  took - trial.images * curve.Median(best) / best);
}

BatchCharge BatchQueue::Fill(const DeviceTurns::Member& device,
                             server::Priority first, const Decision& decision,
                             absl::Time now, Batch* batch) {
  const KeyTasks& waiting = waiting_.keys().at(batch->key);
  const BatchCurve& curve = profile_.Curve(batch->key);
  // Late tasks are dropped only if the estimates are fresh, because old
  // estimates may be wrong. A trial never drops late tasks.
  const bool drops_late = curve.IsFresh(now) && !decision.is_trial;
  const auto end = [&](int count) {
    return drops_late ? now + curve.P95(count) : absl::InfinitePast();
  };
  const bool is_busy = IsBusy(now);
  const int images = CountWithMates(waiting, curve, first, decision.images);
  int wanted = images;
  // Each iteration tries a batch of the first `wanted` tasks. If some of them
  // would end too late, there are two cases. If a smaller batch ends in time
  // and is worthwhile, the next iteration tries the smaller batch. If not, the
  // late tasks are dropped, and the next iteration tries other tasks instead.
  while (true) {
    const std::vector<TaskId> ids =
        FirstTasks(device, batch->key, first, wanted);
    const int count = static_cast<int>(ids.size());
    if (count == 0) return {};

    std::vector<TaskId> late;
    // The earliest `finish_by` of the late tasks, or infinite if no task is
    // late. The vector `late` also receives cancelled tasks.
    absl::Time earliest = absl::InfiniteFuture();
    for (const TaskId& id : ids) {
      const BatchTask& task = waiting.line(id.priority).task(id.urgency);
      const bool is_late = task.finish_by < end(count);
      if (is_late) earliest = std::min(earliest, task.finish_by);
      if (is_late || task.is_cancelled()) {
        late.push_back(id);
      }
    }
    if (late.empty()) {
      BatchCharge charge = Charge(device, ids);
      for (const TaskId& id : ids) batch->tasks.push_back(Take(id));
      return charge;
    }
    // The size of the largest batch that ends in time for the most urgent late
    // task, or 0 if no batch does.
    int fewer = count - 1;
    while (fewer > 0 && earliest < end(fewer)) --fewer;
    // In a smaller batch, more images meet their deadlines. But the smaller
    // batch takes more device time per image, and other tasks wait longer. The
    // batch is therefore reduced only if both conditions hold:
    // - No other client waits for the device, and no other task with this batch
    //   key waits.
    // - The queue is not busy (see IsBusy()), or PaysToCut() returns true.
    const bool may_cut =
        earliest < absl::InfiniteFuture() && fewer > 0 &&
        waiting.size() == count &&
        device.With([](const ClientTurns& t) { return t.active(); }) == 1;
    if (may_cut && (!is_busy || PaysToCut(curve, count, fewer,
                                          std::min<int>(late.size(), fewer)))) {
      wanted = fewer;
      continue;
    }
    for (const TaskId& id : late) batch->dropped.push_back(Take(id));
    wanted = images;
  }
}

bool BatchQueue::IsBusy(absl::Time now) const {
  // The queue is busy if the tasks need at least this fraction of the slots'
  // time.
  constexpr double kBusy = 0.7;
  double busy = 0;
  for (const auto& [key, waiting] : waiting_.keys()) {
    const BatchCurve& curve = profile_.Curve(key);
    const int best = curve.best_size();
    busy += absl::FDivDuration(
        curve.Median(best),
        std::max(best * waiting.gap.Mean(now), absl::Nanoseconds(1)));
  }
  return busy >= kBusy * slots_;
}

BatchCharge BatchQueue::Charge(const DeviceTurns::Member& device,
                               const std::vector<TaskId>& ids) const {
  std::map<std::pair<server::Priority, absl::string_view>, int> images;
  for (const TaskId& id : ids) {
    const WaitingTasks::Line& line =
        waiting_.keys().at(id.key).line(id.priority);
    ++images[{id.priority, line.task(id.urgency).client()}];
  }
  BatchCharge charge;
  charge.model = device.queue().model;
  charge.cost = Cost(ids[0].key, static_cast<int>(ids.size()));
  for (const auto& [of, count] : images) {
    charge.parts.push_back({of.first, std::string(of.second), count});
  }
  device.With([&](ClientTurns& turns) { turns.Charge(&charge); });
  return charge;
}

BatchQueue::BatchDuration BatchQueue::Ran(uint64_t number, absl::Time now,
                                          bool failed) {
  const auto it = running_.find(number);
  if (it == running_.end()) return {};
  const Running running = std::move(it->second);
  running_.erase(it);
  const BatchDuration times = {running.predicted, now - running.start};
  running.device->With([&](ClientTurns& turns) {
    turns.Correct(running.charge, times.measured);
  });
  if (running.trial_cost.has_value()) {
    trial_debt_ +=
        (failed ? absl::ZeroDuration() : TrialCost(running, times.measured)) -
        *running.trial_cost;
  } else {
    trial_debt_ = std::max(absl::ZeroDuration(),
                           trial_debt_ - kTrialShare * times.measured);
  }
  if (failed) return times;
  profile_.Record(running.key, running.images, times.measured, now);
  turn_wait_ += kTurnWaitRate * (running.waited - turn_wait_);
  return times;
}

std::vector<KeyProfile> BatchQueue::KeyProfiles(absl::Time now) const {
  std::vector<KeyProfile> profiles;
  for (const auto& [key, curve] : profile_.curves()) {
    const auto waiting = waiting_.keys().find(key);
    const absl::Duration gap = waiting == waiting_.keys().end()
                                   ? absl::InfiniteDuration()
                                   : waiting->second.gap.Mean(now);
    profiles.push_back({key, curve, gap});
  }
  return profiles;
}

}  // namespace sfmamba::batching
