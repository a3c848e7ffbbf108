#include "server/repository/reaper.h"

#include <utility>

#include "server/threads/thread_name.h"

namespace sfmamba::repository {

Reaper::Reaper(Freed freed, std::function<void()> trim)
    : freed_(std::move(freed)),
      trim_(std::move(trim)),
      thread_([this] { Loop(); }) {}

Reaper::~Reaper() {
  {
    absl::MutexLock lock(&grave_->mu);
    grave_->closed = true;
  }
  thread_.join();
}

std::shared_ptr<LoadedModel> Reaper::Own(std::unique_ptr<LoadedModel> model) {
  return std::shared_ptr<LoadedModel>(
      model.release(), [grave = grave_](LoadedModel* released) {
        grave->Take(std::unique_ptr<LoadedModel>(released));
      });
}

void Reaper::Grave::Take(std::unique_ptr<LoadedModel> model) {
  absl::MutexLock lock(&mu);
  if (!closed) waiting.push_back(std::move(model));
  // Otherwise it is freed after the lock.
}

void Reaper::Loop() {
  server::NameThisThread("reaper");
  while (true) {
    std::vector<std::unique_ptr<LoadedModel>> models;
    bool closed;
    {
      absl::MutexLock lock(&grave_->mu,
                           absl::Condition(grave_.get(), &Grave::IsBusy));
      models.swap(grave_->waiting);
      closed = grave_->closed;
    }
    for (std::unique_ptr<LoadedModel>& model : models) {
      const LoadedModel* const which = model.get();
      model = nullptr;
      freed_(which);
    }
    if (!models.empty()) trim_();
    if (closed) return;
  }
}

}  // namespace sfmamba::repository
