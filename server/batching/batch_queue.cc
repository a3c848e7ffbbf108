#include "server/batching/batch_queue.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sfmamba::batching {

namespace {

using KeyTasks = WaitingTasks::KeyTasks;
using TaskId = WaitingTasks::TaskId;

// Least device time charged for a batch.
constexpr absl::Duration kLeastCost = absl::Microseconds(1);

// Most times that a batch's duration may grow by being filled up with tasks of
// lower classes.
constexpr int kMostDelay = 2;

// Trials may cost this part of the time of other batches.
constexpr double kTrialShare = 0.01;

// Weight of the newest batch in the moving average turn_wait_.
constexpr double kTurnWaitRate = 0.2;

// Up to `count` tasks of a key, those of class `first` before others.
std::vector<TaskId> FirstTasks(const KeyTasks& waiting, const BatchKey& key,
                               server::Priority first, size_t count) {
  std::vector<TaskId> ids;
  const auto add = [&](server::Priority priority) {
    for (const auto& [urgency, task] : waiting.line(priority).tasks()) {
      if (ids.size() == count) return;
      ids.push_back({key, priority, urgency});
    }
  };
  add(first);
  for (int i = 0; i < server::kPriorityCount; ++i) {
    if (i != static_cast<int>(first)) add(static_cast<server::Priority>(i));
  }
  return ids;
}

// Whether a batch of `images` should be cut to `fewer` where more arrive than
// can be computed: whether it saves more than are lost to the time it costs.
bool PaysToCut(const BatchCurve& curve, int images, int fewer, int saved) {
  const absl::Duration cost =
      curve.Median(fewer) + curve.Median(images - fewer) - curve.Median(images);
  const int best = curve.best_size();
  return saved * curve.Median(best) >= cost * best;
}

// How many of `images` a batch of class `first` should have, so that tasks of
// lower classes do not delay it much.
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

BatchQueue::BatchQueue(const BatchOptions& options, int slots)
    : options_(options), slots_(slots), profile_(options.max_batch_size) {}

absl::Duration BatchQueue::TimeOf(const BatchKey& key, int64_t images) const {
  const BatchCurve& curve = profile_.Curve(key);
  const int best = curve.best_size();
  return images * curve.Median(best) / (best * slots_);
}

absl::Time BatchQueue::DueBy(const BatchTask& task, absl::Time now) const {
  const absl::Time finish = std::min(task.deadline, task.finish_by);
  const bool has_deadline =
      finish != absl::InfiniteFuture() && !task.has_default_deadline;
  if (has_deadline) return finish;
  return std::min(finish, now + options_.patience) +
         TimeOf(task.key, task.reservation->turns);
}

void BatchQueue::Push(BatchTask task, absl::Time now) {
  task.submitted = now;
  const BatchKey key = task.key;
  const server::Priority line = task.priority;
  const QueueRoom::Part& place = *task.reservation;
  absl::Time order_by = DueBy(task, now);
  // A client that holds little does not get into a higher class by it.
  task.promote_at = now + (order_by - now) / 2;
  if (place.holds_little) {
    order_by = std::min(order_by, now + TimeOf(key, place.turns));
  }
  waiting_.Add(std::move(task), key, line, order_by);
}

std::vector<BatchTask> BatchQueue::TakeDropped(absl::Time now) {
  std::vector<BatchTask> dropped = waiting_.TakeExpired(now);
  if (now - cancels_taken_ >= kCancelPeriod) {
    cancels_taken_ = now;
    for (BatchTask& task : waiting_.TakeCancelled()) {
      dropped.push_back(std::move(task));
    }
  }
  return dropped;
}

WaitingLine BatchQueue::LineOf(const BatchKey& key, const KeyTasks& waiting,
                               server::Priority priority,
                               absl::Time now) const {
  const auto& [urgency, first] = *waiting.line(priority).tasks().begin();
  WaitingLine line;
  line.curve = &profile_.Curve(key);
  line.tasks = waiting.size();
  line.oldest = waiting.arrivals.begin()->second;
  line.order_by = urgency.first;
  line.start_by = first.deadline;
  line.finish_by = first.finish_by;
  line.gap = waiting.gap.Mean(now);
  return line;
}

std::vector<WaitingLine> BatchQueue::Lines(server::Priority priority,
                                           absl::Time now,
                                           std::vector<BatchKey>* keys) const {
  std::vector<WaitingLine> lines;
  for (const auto& [key, waiting] : waiting_.keys()) {
    if (waiting.line(priority).empty()) continue;
    lines.push_back(LineOf(key, waiting, priority, now));
    keys->push_back(key);
  }
  return lines;
}

absl::Time BatchQueue::Due(absl::Time now) const {
  if (draining_ && size() > 0) return absl::InfinitePast();
  absl::Time due = absl::InfiniteFuture();
  for (const auto& [key, waiting] : waiting_.keys()) {
    for (const server::Priority priority : server::kPrioritiesInOrder) {
      if (waiting.line(priority).empty()) continue;
      due =
          std::min(due, LeaveAt(options_, LineOf(key, waiting, priority, now)));
    }
  }
  return due <= now ? absl::InfinitePast() : due;
}

BatchQueue::Next BatchQueue::PeekNext(absl::Time now) const {
  for (int i = 0; i < server::kPriorityCount; ++i) {
    const server::Priority priority = static_cast<server::Priority>(i);
    std::vector<BatchKey> keys;
    const std::vector<WaitingLine> lines = Lines(priority, now, &keys);
    if (lines.empty()) continue;
    const auto first = std::min_element(
        lines.begin(), lines.end(),
        [](const auto& a, const auto& b) { return a.order_by < b.order_by; });
    return {priority, first->curve->Median(ChooseSize(options_, *first)),
            first->order_by};
  }
  return {};
}

std::optional<Batch> BatchQueue::PopBatch(absl::Time now,
                                          absl::Duration waited) {
  Batch batch;
  batch.dropped = TakeDropped(now);
  waiting_.Promote(now);
  ScheduleOptions schedule = options_;
  if (draining_) schedule.max_queue_delay = absl::ZeroDuration();
  for (const server::Priority priority : ClassesInTurn()) {
    std::vector<BatchKey> keys;
    const std::vector<WaitingLine> lines = Lines(priority, now, &keys);
    const Decision decision =
        Decide(schedule, lines, now, trial_debt_ <= absl::ZeroDuration());
    if (decision.line < 0) continue;
    batch.key = keys[decision.line];
    batch.trigger = decision.trigger;
    if (draining_ && batch.trigger == BatchTrigger::kDelay) {
      batch.trigger = BatchTrigger::kDrain;
    }
    Fill(priority, decision, now, &batch);
    if (!batch.tasks.empty()) {
      batch.number = ++batches_;
      last_key_ = batch.key;
      const int count = static_cast<int>(batch.tasks.size());
      Running& running = running_[batch.number];
      running = {batch.key, count, now, waited,
                 profile_.Curve(batch.key).Median(count)};
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

void BatchQueue::Fill(server::Priority first, const Decision& decision,
                      absl::Time now, Batch* batch) {
  const KeyTasks& waiting = waiting_.keys().at(batch->key);
  const BatchCurve& curve = profile_.Curve(batch->key);
  // No task is given up because of an old curve: it may be wrong.
  const bool drops_late = curve.IsFresh(now) && !decision.is_trial;
  const auto end = [&](int count) {
    return drops_late ? now + curve.P95(count) : absl::InfinitePast();
  };
  const bool is_busy = IsBusy(now);
  const int images = CountWithMates(waiting, curve, first, decision.images);
  int wanted = images;
  // Each round tries the first `wanted` tasks. Some may end too late in their
  // batch: then a smaller one is tried for their sake, or they are dropped and
  // others run in their stead.
  while (true) {
    const std::vector<TaskId> ids =
        FirstTasks(waiting, batch->key, first, wanted);
    const int count = static_cast<int>(ids.size());
    if (count == 0) return;

    std::vector<TaskId> late;
    // Infinite if none is late, and tasks are only cancelled.
    absl::Time earliest = absl::InfiniteFuture();
    for (const TaskId& id : ids) {
      const BatchTask& task = waiting.line(id.line).tasks().at(id.urgency);
      const bool is_late = task.finish_by < end(count);
      if (is_late) earliest = std::min(earliest, task.finish_by);
      if (is_late || task.is_cancelled()) {
        late.push_back(id);
      }
    }
    if (late.empty()) {
      Charge(curve, ids);
      for (const TaskId& id : ids) {
        batch->tasks.push_back(waiting_.Take(id));
      }
      return;
    }
    // The largest batch that ends in time for the most urgent; 0 if none does.
    int fewer = count - 1;
    while (fewer > 0 && earliest < end(fewer)) --fewer;
    // A smaller batch costs the device more an image, which other tasks pay for
    // by waiting. So it is cut only if no other task of the key waits, and
    // either the device has time to spare or the images saved are worth it.
    const bool may_cut = earliest < absl::InfiniteFuture() && fewer > 0 &&
                         waiting.size() == count;
    if (may_cut && (!is_busy || PaysToCut(curve, count, fewer,
                                          std::min<int>(late.size(), fewer)))) {
      wanted = fewer;
      continue;
    }
    for (const TaskId& id : late) {
      batch->dropped.push_back(waiting_.Take(id));
    }
    wanted = images;
  }
}

bool BatchQueue::IsBusy(absl::Time now) const {
  constexpr double kBusy = 0.7;  // Part of the slots' time.
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

std::array<server::Priority, server::kPriorityCount> BatchQueue::ClassesInTurn()
    const {
  std::array<server::Priority, server::kPriorityCount> classes =
      server::kPrioritiesInOrder;
  std::stable_sort(classes.begin(), classes.end(),
                   [this](server::Priority a, server::Priority b) {
                     return shares_.StartOf(a) < shares_.StartOf(b);
                   });
  return classes;
}

void BatchQueue::Charge(const BatchCurve& curve,
                        const std::vector<TaskId>& ids) {
  // The virtual time passes no class that waits, though another had to leave.
  absl::Duration least = absl::InfiniteDuration();
  for (const server::Priority priority : server::kPrioritiesInOrder) {
    if (waiting_.count(priority) == 0) continue;
    least = std::min(least, shares_.StartOf(priority));
  }
  shares_.AdvanceTo(least);
  const int images = static_cast<int>(ids.size());
  const absl::Duration cost =
      std::max(kLeastCost, curve.Median(images)) / images;
  for (const TaskId& id : ids) shares_.Charge(id.line, cost, id.line);
}

BatchQueue::BatchDuration BatchQueue::Ran(uint64_t number, absl::Time now,
                                          bool failed) {
  const auto it = running_.find(number);
  if (it == running_.end()) return {};
  const Running running = it->second;
  running_.erase(it);
  const BatchDuration times = {running.predicted, now - running.start};
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
