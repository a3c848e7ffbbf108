#include "server/repository/reaper.h"

#include <utility>

namespace sfmamba::repository {

Reaper::Reaper(Freed freed, std::function<void()> trim)
    : freed_(std::move(freed)), trim_(std::move(trim)), worker_({"reaper"}) {
  absl::MutexLock lock(&grave_->mu);
  grave_->worker = &worker_;
}

Reaper::~Reaper() {
  absl::MutexLock lock(&grave_->mu);
  grave_->worker = nullptr;
}

std::shared_ptr<LoadedModel> Reaper::Own(std::unique_ptr<LoadedModel> model) {
  const auto release = [this, grave = grave_](LoadedModel* released) {
    {
      absl::MutexLock lock(&grave->mu);
      if (grave->worker != nullptr) {
        grave->worker->Push([this, released](bool /*stopped*/) {
          delete released;
          freed_(released);
          trim_();
        });
        return;
      }
    }
    delete released;
  };
  return std::shared_ptr<LoadedModel>(model.release(), release);
}

}  // namespace sfmamba::repository
