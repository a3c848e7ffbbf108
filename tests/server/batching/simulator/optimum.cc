#include "tests/server/batching/simulator/optimum.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace sfmamba::batching {
namespace {

class Search {
 public:
  Search(const SimulatedModel& model,
         const std::vector<SimulatedRequest>& trace)
      : model_(model), trace_(trace) {}

  // Returns the maximum number of requests that can be answered from `now` on.
  // `gone` has a bit for each request that has left.
  int Best(unsigned gone, absl::Duration now) {
    const auto [memo, is_new] = memo_.try_emplace({gone, now}, 0);
    if (!is_new) return memo->second;
    int best = 0;
    unsigned waiting = 0;
    absl::Duration next = absl::InfiniteDuration();  // The next arrival.
    for (size_t i = 0; i < trace_.size(); ++i) {
      if (gone >> i & 1) continue;
      if (trace_[i].at <= now) {
        waiting |= 1u << i;
      } else {
        next = std::min(next, trace_[i].at);
      }
    }
    if (next < absl::InfiniteDuration()) best = Best(gone, next);
    for (unsigned batch = waiting; batch > 0; batch = (batch - 1) & waiting) {
      const int images = __builtin_popcount(batch);
      if (images > model_.options.max_batch_size) continue;
      const BatchKey& key = trace_[__builtin_ctz(batch)].key;
      const absl::Duration end = now + model_.cost(key, images);
      bool fits = true;
      for (size_t i = 0; i < trace_.size(); ++i) {
        if (batch >> i & 1) {
          fits = fits && trace_[i].key == key &&
                 end <= trace_[i].at + trace_[i].deadline;
        }
      }
      if (fits) best = std::max(best, images + Best(gone | batch, end));
    }
    return memo_[{gone, now}] = best;
  }

 private:
  const SimulatedModel& model_;
  const std::vector<SimulatedRequest>& trace_;
  std::map<std::pair<unsigned, absl::Duration>, int> memo_;
};

}  // namespace

int Optimum(const SimulatedModel& model,
            const std::vector<SimulatedRequest>& trace) {
  return Search(model, trace).Best(0, absl::ZeroDuration());
}

int OptimumOfOneSize(const SimulatedModel& model,
                     const std::vector<SimulatedRequest>& trace) {
  // It is enough to try batches of neighbours in the order of arrival. If a
  // batch skips a request, this request can change places with a later request
  // of the batch.
  //
  // outcomes[i] covers the first `i` requests. For each time at which the
  // device can be free again, it contains the maximum number of answers.
  // Entries with a later time have more answers.
  using Outcomes = std::map<absl::Duration, int>;
  std::vector<Outcomes> outcomes(trace.size() + 1);
  const auto add = [&outcomes](size_t i, absl::Duration free_at, int answered) {
    Outcomes& others = outcomes[i];
    auto it = others.upper_bound(free_at);
    if (it != others.begin() && std::prev(it)->second >= answered) return;
    it = others.insert_or_assign(free_at, answered).first;
    for (++it; it != others.end() && it->second <= answered;) {
      it = others.erase(it);
    }
  };
  add(0, absl::ZeroDuration(), 0);
  for (size_t i = 0; i < trace.size(); ++i) {
    const absl::Duration deadline = trace[i].at + trace[i].deadline;
    for (const auto& [free_at, answered] : outcomes[i]) {
      add(i + 1, std::max(free_at, trace[i].at), answered);
      const int most = std::min<int>(model.options.max_batch_size,
                                     static_cast<int>(trace.size() - i));
      for (int images = 1; images <= most; ++images) {
        const absl::Duration end = std::max(free_at, trace[i + images - 1].at) +
                                   model.cost(trace[i].key, images);
        if (end > deadline) break;
        add(i + images, end, answered + images);
      }
    }
    outcomes[i].clear();
  }
  return outcomes.back().rbegin()->second;
}

int InTimeOneByOne(double capacity,
                   const std::vector<SimulatedRequest>& trace) {
  const absl::Duration each = absl::Seconds(1 / capacity);
  absl::Duration free_at;
  int in_time = 0;
  for (const SimulatedRequest& request : trace) {
    const absl::Duration end = std::max(free_at, request.at) + each;
    if (end > request.at + request.deadline) continue;
    free_at = end;
    ++in_time;
  }
  return in_time;
}

}  // namespace sfmamba::batching
