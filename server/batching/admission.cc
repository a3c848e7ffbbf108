#include "server/batching/admission.h"

#include <algorithm>

namespace sfmamba::batching {
namespace {

// The predicted end of a request includes a margin, because the real wait for a
// batch may be longer than the predicted wait. The margin is at least the
// predicted wait divided by kErrorOfWait. The real wait rarely exceeds the
// predicted wait by more than this margin.
constexpr int kErrorOfWait = 32;

// Predicts the device time of all work that runs before a new task of class
// `priority`. `earlier` is the device time of earlier tasks of this class, and
// `work.earlier` is ignored.
//
// While the earlier tasks run, the classes get device time in the ratio of
// kPriorityShares. The other classes may therefore run only a part of their
// waiting work before the new task. The result includes this much work:
// - Higher classes: at most `earlier` * (sum of the shares of all higher
//   classes) / (share of `priority`).
// - Lower classes: at most `earlier` * (sum of the shares of all lower classes)
//   / (share of `priority`).
absl::Duration Before(const WorkAhead& work, absl::Duration earlier,
                      server::Priority priority) {
  const double own = server::kPriorityShares[static_cast<int>(priority)];
  double higher = 0, lower = 0;
  for (int i = 0; i < server::kPriorityCount; ++i) {
    if (i < static_cast<int>(priority)) higher += server::kPriorityShares[i];
    if (i > static_cast<int>(priority)) lower += server::kPriorityShares[i];
  }
  return earlier + std::min(work.higher, earlier * (higher / own)) +
         std::min(work.lower, earlier * (lower / own));
}

// Returns the time when `slots` slots together have finished `work`. Each slot
// runs one batch at a time. `busy_until` contains the expected end of each
// running batch. The slot of a running batch can take other work only after
// this end.
absl::Time WhenDone(std::vector<absl::Time> busy_until, int slots,
                    absl::Duration work, absl::Time now) {
  busy_until.resize(std::max<size_t>(slots, busy_until.size()), now);
  for (absl::Time& time : busy_until) time = std::max(time, now);
  std::sort(busy_until.begin(), busy_until.end());
  // Until the next slot becomes available, the first `free` slots divide the
  // work evenly.
  for (size_t free = 1;; ++free) {
    const absl::Time from = busy_until[free - 1];
    const absl::Duration share = work / free;
    if (free == busy_until.size() || from + share <= busy_until[free]) {
      return from + share;
    }
    work -= (busy_until[free] - from) * free;
  }
}

}  // namespace

AdmissionEstimate EstimateAdmission(const AdmissionState& state,
                                    const AdmissionRequest& request,
                                    absl::Time now) {
  const BatchCurve& curve = *state.curve;
  const int best = curve.best_size();
  const int last = state.mates + request.images;
  // The number of full batches that run before the batch with the request's
  // last image.
  const int full = (last - 1) / best;
  // Returns `work` plus the time that the batches of `work` wait for other
  // models. Assumes that `work` consists of full batches and that each batch
  // waits once.
  const auto with_waits = [&](absl::Duration work) {
    if (curve.Median(best) == absl::ZeroDuration()) return work;
    return work +
           absl::FDivDuration(work, curve.Median(best)) * state.turn_wait;
  };
  const absl::Duration before =
      with_waits(Before(state.work,
                        state.work.earlier + full * curve.Median(best),
                        request.priority)) +
      state.turn_wait;
  AdmissionEstimate estimate;
  estimate.start =
      std::max(now + request.decode,
               WhenDone(state.busy_until, state.slots, before, now));
  // Other images can join the request's last batch until this batch starts.
  // They are images that wait now, and images that arrive before the start.
  double images = last - full * best + state.others;
  if (state.gap < absl::InfiniteDuration()) {
    images += absl::FDivDuration(estimate.start - now,
                                 std::max(state.gap, absl::Nanoseconds(1)));
  }
  const int batch = static_cast<int>(std::min<double>(images, best));
  const absl::Duration error = std::max(curve.P95(batch) - curve.Median(batch),
                                        (estimate.start - now) / kErrorOfWait);
  estimate.finish =
      estimate.start + curve.Median(batch) + error + request.answer;
  estimate.work =
      with_waits(curve.Work(request.images) + state.own_others) / state.slots;
  const absl::Duration all = with_waits(
      Before(state.drain,
             state.drain.earlier + curve.Work(state.decoding + request.images),
             request.priority));
  estimate.drained = std::max(
      now + request.decode, WhenDone(state.busy_until, state.slots, all, now));
  estimate.drained_alone = now + std::max(request.decode, estimate.work);
  return estimate;
}

}  // namespace sfmamba::batching
