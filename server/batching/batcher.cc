#include "server/batching/batcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"
#include "server/threads/thread_name.h"

namespace sfmamba::batching {
namespace {

// If an image arrives within this time after the last call of
// Observer::WaitPredicted(), the function is not called again for this image.
constexpr absl::Duration kWaitPeriod = absl::Milliseconds(20);

std::map<DeviceTurns*, std::unique_ptr<DeviceTurns::Member>> JoinAll(
    const std::vector<DeviceTurns*>& devices, const std::string& model) {
  std::map<DeviceTurns*, std::unique_ptr<DeviceTurns::Member>> members;
  for (DeviceTurns* device : devices) {
    std::unique_ptr<DeviceTurns::Member>& member = members[device];
    if (member == nullptr) member = device->Join(model);
  }
  return members;
}

std::vector<const DeviceTurns::Member*> PointersTo(
    const std::map<DeviceTurns*, std::unique_ptr<DeviceTurns::Member>>&
        members) {
  std::vector<const DeviceTurns::Member*> pointers;
  for (const auto& [device, member] : members) pointers.push_back(member.get());
  return pointers;
}

absl::Status WhyDropped(const BatchTask& task) {
  return task.is_cancelled() ? server::Cancelled("queue")
                             : server::Expired("queue");
}

}  // namespace

Batcher::Batcher(const BatchOptions& options,
                 const std::vector<DeviceTurns*>& devices, MakeRun make_run,
                 Observer* observer, Clock clock)
    : make_run_(std::move(make_run)),
      clock_(std::move(clock)),
      observer_(observer),
      members_(JoinAll(devices, options.model)),
      room_({options.max_queue_items, options.max_queue_bytes}, "batch",
            options.client_share),
      queue_(options, static_cast<int>(devices.size()), PointersTo(members_)),
      running_since_(devices.size(), absl::InfiniteFuture()),
      drop_thread_([this] { DropLoop(); }) {
  for (DeviceTurns* device : devices) {
    devices_.push_back(members_.at(device).get());
  }
  for (size_t thread = 0; thread < devices.size(); ++thread) {
    run_threads_.emplace_back([this, thread] { RunLoop(thread); });
  }
}

Batcher::~Batcher() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    queue_.Drain();
    run_wake_.SignalAll();
  }
  for (std::thread& thread : run_threads_) thread.join();
  drop_thread_.join();
}

void Batcher::Submit(BatchTask task) {
  absl::Status refusal;
  if (task.reservation.empty()) {
    absl::StatusOr<Reservation> room = room_.Take(1, task.image.bytes());
    if (room.ok()) task.reservation = *std::move(room);
    refusal = room.status();
  }
  bool wake_run = false, wake_drop = false;
  {
    absl::MutexLock lock(&mu_);
    if (stopping_) refusal = server::Draining("the model");
    if (refusal.ok()) {
      const bool cancel_check = queue_.size() == 0;
      const absl::Time now = clock_();
      const absl::Time drop_at =
          std::min(task.deadline,
                   cancel_check ? now + kCancelPeriod : absl::InfiniteFuture());
      const server::Priority priority = task.priority;
      queue_.Push(std::move(task), now);
      ReportQueue(priority);
      if (now - wait_reported_ >= kWaitPeriod) ReportWait(now);
      // If all threads are busy, run_at_ is InfinitePast(), and Due() need not
      // be computed.
      wake_run = run_at_ != absl::InfinitePast() && queue_.Due(now) < run_at_;
      wake_drop = drop_at < drop_at_;
    }
  }
  if (wake_run) run_wake_.SignalAll();
  if (wake_drop) drop_wake_.Signal();
  if (refusal.ok()) return;
  task.reservation.Release();
  task.done(std::move(refusal), BatchInfo());
}

AdmissionEstimate Batcher::Estimate(AdmissionRequest request) {
  absl::MutexLock lock(&mu_);
  const absl::Time now = clock_();
  // On a busy machine, drop_thread_ may be late. Expired tasks are therefore
  // dropped here, too.
  Drop(queue_.TakeDropped(now));
  const int64_t own = request.all_images();
  request.decoding = static_cast<int>(
      std::max<int64_t>(0, room_.items() - own - queue_.size()));
  request.own_decoding = request.decoding;
  if (!request.client.empty()) {
    const int64_t held = room_.clients().HeldBy(request.client);
    request.own_decoding = static_cast<int>(std::clamp<int64_t>(
        held - own - queue_.CountOf(request.client), 0, request.decoding));
    request.other_clients = room_.clients().clients() - 1;
  }
  return queue_.Estimate(request, now);
}

std::vector<BatchTime> Batcher::ExportProfile() const {
  absl::MutexLock lock(&mu_);
  return queue_.profile().Export();
}

std::vector<KeyProfile> Batcher::KeyProfiles() const {
  absl::MutexLock lock(&mu_);
  return queue_.KeyProfiles(clock_());
}

void Batcher::ImportProfile(const std::vector<BatchTime>& times) {
  absl::MutexLock lock(&mu_);
  queue_.profile().Import(times, clock_());
}

absl::Time Batcher::RunningSince() const {
  absl::MutexLock lock(&mu_);
  absl::Time since = absl::InfiniteFuture();
  for (const absl::Time start : running_since_) since = std::min(since, start);
  return since;
}

void Batcher::RunLoop(int thread) {
  server::NameThisThread(absl::StrCat("batch-", thread));
  Run run = make_run_(thread);
  std::optional<DeviceTurns::Turn> last;
  while (std::optional<Ready> work = NextWork(thread, std::move(last))) {
    const uint64_t number = work->batch.number;
    Ran ran = run(std::move(work->batch));
    last.emplace(std::move(work->turn));
    const bool idle = BatchEnded(thread, number, ran.succeeded);
    if (idle) last.reset();
    if (ran.answer_last) ran.answer_last(idle);
  }
}

bool Batcher::BatchEnded(int thread, uint64_t number, bool succeeded) {
  absl::MutexLock lock(&mu_);
  running_since_[thread] = absl::InfiniteFuture();
  const absl::Time now = clock_();
  const BatchQueue::BatchDuration times = queue_.Ran(number, now, !succeeded);
  ReportWait(now);
  if (observer_ != nullptr && succeeded) observer_->BatchEnded(times);
  return queue_.Due(now) > now;
}

std::optional<Batcher::Ready> Batcher::NextWork(
    int thread, std::optional<DeviceTurns::Turn> last) {
  {
    absl::MutexLock lock(&mu_);
    idle_.push_back(thread);
    const absl::Time now = clock_();
    if (idle_.front() != thread || queue_.Due(now) > now) last.reset();
  }
  while (WaitUntilDue(thread)) {
    const absl::Time since = clock_();
    DeviceTurns::Turn turn = TakeTurn(thread, std::move(last));
    last.reset();
    std::optional<Batch> batch = TakeBatch(thread, since);
    if (batch.has_value()) return Ready{*std::move(batch), std::move(turn)};
    turn.Return();
  }
  return std::nullopt;
}

bool Batcher::WaitUntilDue(int thread) {
  absl::MutexLock lock(&mu_);
  while (true) {
    if (idle_.front() != thread) {
      first_wake_.Wait(&mu_);
      continue;
    }
    const absl::Time now = clock_();
    const absl::Time due = queue_.Due(now);
    if (due <= now) return true;
    if (stopping_) {
      emptied_ = true;
      drop_wake_.Signal();
      LeaveIdle(thread);
      return false;
    }
    run_at_ = due;
    run_wake_.WaitWithTimeout(&mu_, due - now);
    // If another thread has become the first of idle_, run_at_ belongs to the
    // other thread and must not change here.
    if (idle_.front() == thread) run_at_ = absl::InfinitePast();
  }
}

DeviceTurns::Turn Batcher::TakeTurn(int thread,
                                    std::optional<DeviceTurns::Turn> last) {
  DeviceTurns::Member& device = *devices_[thread];
  std::optional<DeviceTurns::Turn> turn = device.TryTake(std::move(last));
  if (turn.has_value()) return *std::move(turn);
  {
    absl::MutexLock lock(&mu_);
    LeaveIdle(thread);
  }
  DeviceTurns::Turn taken = device.Take();
  absl::MutexLock lock(&mu_);
  idle_.push_front(thread);
  // `thread` is now the first of idle_. The previous first thread still waits
  // for run_wake_. The signal makes it wait for first_wake_ instead.
  run_wake_.SignalAll();
  return taken;
}

std::optional<Batch> Batcher::TakeBatch(int thread, absl::Time since) {
  absl::MutexLock lock(&mu_);
  const absl::Time now = clock_();
  std::optional<Batch> batch =
      queue_.PopBatch(now, now - since, devices_[thread]);
  if (!batch.has_value()) return std::nullopt;
  Drop(std::exchange(batch->dropped, {}));
  for (BatchTask& task : batch->tasks) task.reservation.Release();
  ReportQueue();
  if (batch->tasks.empty()) return std::nullopt;
  running_since_[thread] = now;
  LeaveIdle(thread);
  return batch;
}

void Batcher::LeaveIdle(int thread) {
  idle_.erase(std::find(idle_.begin(), idle_.end(), thread));
  first_wake_.SignalAll();
}

void Batcher::DropLoop() {
  server::NameThisThread("batch-drop");
  while (true) {
    std::vector<BatchTask> dropped = NextDropped();
    if (dropped.empty()) return;
    for (BatchTask& task : dropped) task.done(WhyDropped(task), BatchInfo());
  }
}

std::vector<BatchTask> Batcher::NextDropped() {
  absl::MutexLock lock(&mu_);
  bool was_empty = false;
  while (true) {
    const absl::Time now = clock_();
    Drop(queue_.TakeDropped(now));
    if (!dropped_.empty()) return std::exchange(dropped_, {});
    if (emptied_) return {};
    // This thread checks the queue again at drop_at_. Submit() wakes it earlier
    // only if the new task needs a check before drop_at_. If the queue has just
    // become empty, drop_at_ is kCancelPeriod from now. A task that arrives
    // before drop_at_ needs its first check at its deadline or kCancelPeriod
    // after its arrival, whichever is earlier. This is usually after drop_at_,
    // so Submit() does not wake this thread. If drop_at_ were infinite, every
    // task that finds the queue empty would wake this thread. If the queue was
    // already empty at the previous check, drop_at_ becomes infinite.
    const bool empty = queue_.size() == 0;
    drop_at_ = empty && was_empty
                   ? absl::InfiniteFuture()
                   : std::min(queue_.NextDeadline(), now + kCancelPeriod);
    was_empty = empty;
    drop_wake_.WaitWithTimeout(&mu_, drop_at_ - now);
    drop_at_ = absl::InfinitePast();
  }
}

void Batcher::Drop(std::vector<BatchTask> dropped) {
  if (dropped.empty()) return;
  for (BatchTask& task : dropped) task.reservation.Release();
  std::move(dropped.begin(), dropped.end(), std::back_inserter(dropped_));
  ReportQueue();
  ReportWait(clock_());
  drop_wake_.Signal();
}

void Batcher::ReportQueue() {
  for (const server::Priority priority : server::kPrioritiesInOrder) {
    ReportQueue(priority);
  }
}

void Batcher::ReportQueue(server::Priority priority) {
  if (observer_ == nullptr) return;
  observer_->QueueChanged(priority, queue_.waiting(priority));
}

void Batcher::ReportWait(absl::Time now) {
  if (observer_ == nullptr) return;
  wait_reported_ = now;
  observer_->WaitPredicted(queue_.Wait(now), queue_.Backlog(),
                           queue_.active_clients());
}

}  // namespace sfmamba::batching
