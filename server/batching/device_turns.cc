#include "server/batching/device_turns.h"

#include <algorithm>
#include <utility>

namespace sfmamba::batching {

DeviceTurns::Turn::Turn(Turn&& other)
    : turns_(std::exchange(other.turns_, nullptr)),
      wish_(other.wish_),
      start_(other.start_) {}

DeviceTurns::Turn::~Turn() {
  if (turns_ != nullptr) turns_->EndAndGrant(wish_, turns_->clock_() - start_);
}

void DeviceTurns::Turn::Return() {
  if (turns_ == nullptr) return;
  std::exchange(turns_, nullptr)->EndAndGrant(wish_, absl::ZeroDuration());
}

DeviceTurns::Member::~Member() {
  absl::MutexLock lock(&turns_.mu_);
  const auto model = turns_.models_.find(model_);
  if (model != turns_.models_.end()) {
    if (--model->second.members > 0) return;
    turns_.models_.erase(model);
  }
  turns_.order_.Remove(number_);
}

std::optional<DeviceTurns::Turn> DeviceTurns::Member::TryTake(
    server::Priority priority, absl::Duration cost, absl::Time order_by,
    std::optional<Turn> last) {
  absl::MutexLock lock(&turns_.mu_);
  if (last.has_value()) {
    turns_.End(last->wish_, turns_.clock_() - last->start_);
    last->turns_ = nullptr;
  }
  if (turns_.taken_ >= turns_.at_once_) return std::nullopt;
  const TurnWish wish = turns_.MakeWish(number_, priority, cost, order_by);
  // Turns are granted as soon as they are free, so others wait only for `last`.
  std::vector<TurnWish> wishes = turns_.Wishes();
  wishes.push_back(wish);
  if (turns_.order_.Next(wishes) + 1 < static_cast<int>(wishes.size())) {
    turns_.Grant();
    return std::nullopt;
  }
  turns_.Start(wish);
  return Turn(&turns_, wish, turns_.clock_());
}

DeviceTurns::Turn DeviceTurns::Member::Take(server::Priority priority,
                                            absl::Duration cost,
                                            absl::Time order_by) {
  absl::MutexLock lock(&turns_.mu_);
  Waiter waiter;
  waiter.member = this;
  waiter.wish = turns_.MakeWish(number_, priority, cost, order_by);
  turns_.waiters_.push_back(&waiter);
  turns_.Grant();
  while (!waiter.granted) waiter.woken.Wait(&turns_.mu_);
  return Turn(&turns_, waiter.wish, turns_.clock_());
}

void DeviceTurns::Member::Hasten(server::Priority priority) {
  absl::MutexLock lock(&turns_.mu_);
  for (Waiter* waiter : turns_.waiters_) {
    if (waiter->member != this) continue;
    waiter->wish.priority = std::min(waiter->wish.priority, priority);
  }
}

DeviceTurns::DeviceTurns(int at_once, Clock clock)
    : at_once_(at_once), clock_(std::move(clock)) {}

DeviceTurns::~DeviceTurns() = default;

std::unique_ptr<DeviceTurns::Member> DeviceTurns::Join(
    const std::string& model) {
  absl::MutexLock lock(&mu_);
  int number = numbers_;
  if (!model.empty()) {
    Model& versions = models_.try_emplace(model, Model{number}).first->second;
    ++versions.members;
    number = versions.number;
  }
  numbers_ = std::max(numbers_, number + 1);
  return std::unique_ptr<Member>(new Member(this, model, number));
}

int DeviceTurns::waiting() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(waiters_.size());
}

TurnWish DeviceTurns::MakeWish(int model, server::Priority priority,
                               absl::Duration cost, absl::Time order_by) {
  TurnWish wish;
  wish.model = model;
  wish.priority = priority;
  wish.cost = cost;
  wish.order_by = order_by;
  wish.arrival = ++arrivals_;
  return wish;
}

std::vector<TurnWish> DeviceTurns::Wishes() const {
  std::vector<TurnWish> wishes;
  for (const Waiter* waiter : waiters_) wishes.push_back(waiter->wish);
  return wishes;
}

void DeviceTurns::Grant() {
  while (taken_ < at_once_ && !waiters_.empty()) {
    const auto next = waiters_.begin() + order_.Next(Wishes());
    Waiter& waiter = **next;
    waiters_.erase(next);
    Start(waiter.wish);
    waiter.granted = true;
    waiter.woken.Signal();
  }
}

void DeviceTurns::Start(const TurnWish& wish) {
  order_.Start(wish);
  ++taken_;
}

void DeviceTurns::End(const TurnWish& wish, absl::Duration took) {
  order_.End(wish, took);
  --taken_;
}

void DeviceTurns::EndAndGrant(const TurnWish& wish, absl::Duration took) {
  absl::MutexLock lock(&mu_);
  End(wish, took);
  Grant();
}

DeviceTurns& Devices::Get(const std::string& name, int at_once) {
  absl::MutexLock lock(&mu_);
  std::unique_ptr<DeviceTurns>& turns = devices_[name];
  if (turns == nullptr) turns = std::make_unique<DeviceTurns>(at_once);
  return *turns;
}

}  // namespace sfmamba::batching
