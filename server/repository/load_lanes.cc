#include "server/repository/load_lanes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/threads/thread_name.h"

namespace sfmamba::repository {

LoadLanes::Lane::Lane(std::function<void()> background_starts)
    : background({"background", std::numeric_limits<size_t>::max(),
                  [starts = std::move(background_starts)] {
                    server::LowerThisThreadsPriority();
                    starts();
                  }}),
      loader({"loader"}) {}

LoadLanes::LoadLanes(size_t most_waiting,
                     std::function<void()> background_starts)
    : most_waiting_(most_waiting) {
  for (int i = 0; i < kLanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>(background_starts));
  }
}

bool LoadLanes::Push(const std::string& id, Job job) {
  absl::MutexLock lock(&mu_);
  if (waiting_ >= most_waiting_) return false;
  Model& model = models_[id];
  if (model.lane == nullptr) model.lane = &Emptiest();
  Lane& lane = *model.lane;
  const bool pushed = lane.loader.Push(
      [this, id, &lane, job = std::move(job)](bool stopped) mutable {
        Begins();
        job(lane.background, stopped);
        // Destroys the captures of `job` before IsBusy(id) becomes false.
        job = nullptr;
        Ended(id);
      });
  if (pushed) {
    ++waiting_;
    ++model.jobs;
    ++lane.jobs;
  } else if (model.jobs == 0) {
    models_.erase(id);
  }
  return pushed;
}

bool LoadLanes::IsBusy(const std::string& id) const {
  absl::MutexLock lock(&mu_);
  return models_.count(id) > 0;
}

void LoadLanes::Stop() {
  for (const auto& lane : lanes_) lane->loader.Stop();
}

LoadLanes::Lane& LoadLanes::Emptiest() {
  return **std::min_element(
      lanes_.begin(), lanes_.end(),
      [](const auto& a, const auto& b) { return a->jobs < b->jobs; });
}

void LoadLanes::Begins() {
  absl::MutexLock lock(&mu_);
  --waiting_;
}

void LoadLanes::Ended(const std::string& id) {
  absl::MutexLock lock(&mu_);
  const auto model = models_.find(id);
  --model->second.lane->jobs;
  if (--model->second.jobs == 0) models_.erase(model);
}

}  // namespace sfmamba::repository
