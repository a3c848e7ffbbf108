#include "server/batching/device_turns.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sfmamba::batching {

namespace {

// The minimum device time charged for a batch.
constexpr absl::Duration kLeastCost = absl::Microseconds(1);

}  // namespace

DeviceTurns::Turn::Turn(Turn&& other)
    : turns_(std::exchange(other.turns_, nullptr)),
      charge_(std::move(other.charge_)),
      start_(other.start_) {}

DeviceTurns::Turn::~Turn() {
  if (turns_ != nullptr) {
    turns_->EndAndGrant(charge_, turns_->clock_() - start_);
  }
}

void DeviceTurns::Turn::Return() {
  if (turns_ == nullptr) return;
  std::exchange(turns_, nullptr)->EndAndGrant(charge_, absl::ZeroDuration());
}

std::optional<DeviceTurns::Turn> DeviceTurns::Member::TryTake(
    std::optional<Turn> last) {
  absl::MutexLock lock(&turns_.mu_);
  if (last.has_value()) {
    turns_.End(last->charge_, turns_.clock_() - last->start_);
    last->turns_ = nullptr;
  }
  if (turns_.taken_ >= turns_.at_once_) return std::nullopt;
  // Usually no member waits while a turn is available, because Grant() grants
  // every available turn at once. Members can wait here only if End() above has
  // just ended `last`, because End() does not call Grant(). ClientTurns then
  // decides whether this queue or a waiting member goes first.
  std::vector<QueueId> queues = turns_.Queues();
  queues.push_back(queue_);
  if (turns_.clients_.Next(queues) + 1 < static_cast<int>(queues.size())) {
    turns_.Grant();
    return std::nullopt;
  }
  ++turns_.taken_;
  return Turn(&turns_, {}, turns_.clock_());
}

DeviceTurns::Turn DeviceTurns::Member::Take() {
  absl::MutexLock lock(&turns_.mu_);
  turns_.Wait(queue_);
  return Turn(&turns_, {}, turns_.clock_());
}

DeviceTurns::Turn DeviceTurns::Member::Take(server::Priority priority,
                                            absl::Duration cost) {
  absl::MutexLock lock(&turns_.mu_);
  cost = std::max(cost, kLeastCost);
  const uint64_t number = ++turns_.numbers_;
  const LineId line = {{queue_.model, static_cast<int>(number)}, priority, {}};
  const std::string client = absl::StrCat("model/", queue_.model);
  turns_.clients_.SetFirst(line, client, {absl::InfiniteFuture(), number},
                           cost);
  turns_.Wait(line.queue);
  BatchCharge charge;
  charge.model = queue_.model;
  charge.parts = {{priority, client, 1}};
  charge.cost = cost;
  turns_.clients_.Charge(&charge);
  turns_.clients_.Remove(line, client);
  return Turn(&turns_, std::move(charge), turns_.clock_());
}

DeviceTurns::DeviceTurns(int at_once, Clock clock)
    : at_once_(at_once), clock_(std::move(clock)) {}

DeviceTurns::~DeviceTurns() = default;

std::unique_ptr<DeviceTurns::Member> DeviceTurns::Join(
    const std::string& model) {
  absl::MutexLock lock(&mu_);
  const int number = ++numbers_;
  const int model_number =
      model.empty() ? number : models_.try_emplace(model, number).first->second;
  return std::unique_ptr<Member>(new Member(this, {model_number, number}));
}

int DeviceTurns::waiting() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(waiters_.size());
}

std::vector<QueueId> DeviceTurns::Queues() const {
  std::vector<QueueId> queues;
  for (const Waiter* waiter : waiters_) queues.push_back(waiter->queue);
  return queues;
}

void DeviceTurns::Wait(const QueueId& queue) {
  Waiter waiter;
  waiter.queue = queue;
  waiters_.push_back(&waiter);
  Grant();
  while (!waiter.granted) waiter.woken.Wait(&mu_);
}

void DeviceTurns::Grant() {
  while (taken_ < at_once_ && !waiters_.empty()) {
    const auto next = waiters_.begin() + clients_.Next(Queues());
    Waiter& waiter = **next;
    waiters_.erase(next);
    ++taken_;
    waiter.granted = true;
    waiter.woken.Signal();
  }
}

void DeviceTurns::End(const BatchCharge& charge, absl::Duration took) {
  clients_.Correct(charge, took);
  --taken_;
}

void DeviceTurns::EndAndGrant(const BatchCharge& charge, absl::Duration took) {
  absl::MutexLock lock(&mu_);
  End(charge, took);
  Grant();
}

DeviceTurns& Devices::Get(const std::string& name, int at_once) {
  absl::MutexLock lock(&mu_);
  std::unique_ptr<DeviceTurns>& turns = devices_[name];
  if (turns == nullptr) turns = std::make_unique<DeviceTurns>(at_once);
  return *turns;
}

}  // namespace sfmamba::batching
