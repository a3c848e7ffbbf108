// What a queue predicts of requests that ask to be admitted.
#include <algorithm>
#include <cstdint>

#include "server/batching/batch_queue.h"

namespace sfmamba::batching {

bool BatchQueue::IsUsed(const BatchKey& key) const {
  const auto waiting = waiting_.keys().find(key);
  if (waiting != waiting_.keys().end() && waiting->second.size() > 0) {
    return true;
  }
  return std::any_of(running_.begin(), running_.end(), [&](const auto& batch) {
    return batch.second.key == key;
  });
}

absl::Time BatchQueue::LeavesAs(const AdmissionRequest& request,
                                const BatchCurve& curve,
                                absl::Time order_by) const {
  const auto found = waiting_.keys().find(request.key);
  if (found == waiting_.keys().end()) return order_by;
  const WaitingTasks::Line& line = found->second.line(request.priority);
  const int mates = line.CountUntil(order_by);
  const int best = curve.best_size();
  const int full = (mates + request.decoding + request.images - 1) / best;
  return full * best < mates ? line.OrderAfter(full * best) : order_by;
}

AdmissionEstimate BatchQueue::Estimate(const AdmissionRequest& request,
                                       absl::Time now) const {
  const absl::Time asked =
      std::min(request.deadline - request.answer, request.start_by);
  absl::Time order_by =
      asked != absl::InfiniteFuture() ? asked : now + options_.patience;
  if (request.turns.has_value()) {
    order_by = std::min(
        order_by, now + request.decode + TimeOf(request.key, *request.turns));
  }
  return EstimateAt(request, order_by, now);
}

AdmissionEstimate BatchQueue::EstimateAt(const AdmissionRequest& request,
                                         absl::Time order_by,
                                         absl::Time now) const {
  AdmissionState state;
  const BatchCurve& own = profile_.Curve(request.key);
  const BatchCurve unknown(options_.max_batch_size);
  // An old curve may be wrong. Tasks that wait or run will correct it soon.
  const auto holds_for = [&](const BatchKey& key) {
    return profile_.Curve(key).IsFresh(now) || IsUsed(key);
  };
  const bool holds = holds_for(request.key);
  state.curve = holds ? &own : &unknown;
  state.slots = slots_;
  if (holds) state.turn_wait = turn_wait_;
  for (const auto& [number, running] : running_) {
    state.busy_until.push_back(
        running.start + profile_.Curve(running.key).Median(running.images));
  }
  // The request's other images are taken to run in batches of their own.
  for (const auto& [key, images] : request.others) {
    if (holds_for(key)) state.own_others += profile_.Curve(key).Work(images);
  }
  state.work.earlier = state.work.all = state.own_others;
  const absl::Time leaves_as = LeavesAs(request, *state.curve, order_by);
  for (const auto& [key, waiting] : waiting_.keys()) {
    if (waiting.size() == 0) continue;
    const BatchCurve& curve = profile_.Curve(key);
    const bool is_own = key == request.key;
    int earlier = 0, higher = 0;
    for (int i = 0; i <= static_cast<int>(request.priority); ++i) {
      const WaitingTasks::Line& line = waiting.lines[i];
      const int until = line.CountUntil(is_own ? order_by : leaves_as);
      earlier += until;
      if (i < static_cast<int>(request.priority)) {
        higher += line.size() - until;
      }
    }
    // What is due before its client's turn and does not fit there will expire.
    if (request.turns.has_value()) {
      earlier = static_cast<int>(std::min<int64_t>(earlier, *request.turns));
    }
    // Batches with earlier tasks, and the request's, are filled up with others.
    const int best = curve.best_size();
    const int first = earlier + (is_own ? request.images : 0);
    const int filled =
        std::min(waiting.size(), (first + best - 1) / best * best);
    const absl::Duration with_earlier = curve.Work(filled);
    if (is_own) {
      state.mates = earlier;
      state.others = waiting.size() - earlier;
      state.gap = waiting.gap.Mean(now);
    } else {
      state.work.earlier += with_earlier;
    }
    const absl::Duration with_higher =
        higher == 0 ? with_earlier
                    : curve.Work(std::max(filled, earlier + higher));
    const absl::Duration all =
        filled == waiting.size() ? with_earlier : curve.Work(waiting.size());
    state.work.higher += with_higher - with_earlier;
    state.work.lower += all - with_higher;
    state.work.all += all;
  }
  return EstimateAdmission(state, request, now);
}

absl::Duration BatchQueue::Wait(absl::Time now) const {
  AdmissionRequest request;
  request.key = last_key_;
  return EstimateAt(request, absl::InfiniteFuture(), now).start - now;
}

}  // namespace sfmamba::batching
