// This file contains the functions of BatchQueue that predict waiting times.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>

#include "server/batching/batch_queue.h"

namespace sfmamba::batching {
namespace {

// The name of the imaginary client whose waiting time Wait() predicts. No real
// client has this name.
constexpr absl::string_view kNewClient = "\n";

// The time over which the number of clients is averaged.
constexpr absl::Duration kLately = absl::Seconds(5);

// Limits the predicted number of tasks that run before a request. Without this
// limit, the number could overflow if thousands of clients have a million tasks
// each.
constexpr int64_t kMostTurns = 1 << 28;

// Returns the number of tasks that are at least as urgent as `limit`. Searches
// from both ends, because `limit` is usually near one end.
int64_t CountUntil(const WaitingTasks::Tasks& tasks, const Urgency& limit) {
  int64_t count = 0;
  for (auto low = tasks.begin(), high = tasks.end(); low != high; ++count) {
    if (low->first > limit) return count;
    if (std::prev(high)->first <= limit) return tasks.size() - count;
    ++low;
    --high;
  }
  return count;
}

}  // namespace

bool BatchQueue::IsUsed(const BatchKey& key) const {
  const auto waiting = waiting_.keys().find(key);
  if (waiting != waiting_.keys().end() && waiting->second.size() > 0) {
    return true;
  }
  return std::any_of(running_.begin(), running_.end(), [&](const auto& batch) {
    return batch.second.key == key;
  });
}

BatchQueue::Turns BatchQueue::TurnsOf(const WaitingTasks::Line& line,
                                      const BatchCurve& curve,
                                      const AdmissionRequest& request,
                                      const Urgency& limit, double new_clients,
                                      bool is_busy) const {
  const WaitingTasks::Tasks& own = line.Of(request.client);
  const int64_t until = line.order().order_of_key(limit);
  const int64_t earlier = line.clients().size() == 1 && !own.empty()
                              ? until
                              : CountUntil(own, limit);
  const int64_t held = own.size();
  const int64_t others = line.size() - held;
  const int64_t clients = line.clients().size() - (held > 0);
  // Returns how many tasks of other clients run while this client runs `images`
  // images. Clients take turns, so each other client can also run `images`
  // images.
  const auto turns = [&](int64_t images) {
    int64_t known = images * clients;
    if (!is_busy) known = std::min(known, others);
    const double all = known + images * new_clients;
    return static_cast<int64_t>(std::min<double>(all, kMostTurns));
  };
  // `before` is the number of this client's images that run before the request.
  // Clients take turns, so each other client runs about as many images in this
  // time. Another client can be ahead of this client by at most one batch,
  // which is `best` images (see ClientTurns).
  //
  // The number of tasks of other clients that run before the request is
  // therefore from turns(before) to turns(before + best). Within this range,
  // urgency decides. The number is then `until - earlier`, because this many
  // tasks of other clients are more urgent than `limit`.
  const int64_t best = curve.best_size();
  const int64_t before = earlier + request.own_decoding;
  return {static_cast<int>(earlier + std::clamp(until - earlier, turns(before),
                                                turns(before + best))),
          static_cast<int>(held + turns(held + request.own_decoding + best))};
}

AdmissionEstimate BatchQueue::Estimate(const AdmissionRequest& request,
                                       absl::Time now) const {
  AdmissionState state;
  const BatchCurve& own = profile_.Curve(request.key);
  const BatchCurve unknown(options_.max_batch_size);
  // A curve is used only if its estimates are fresh, or if waiting or running
  // tasks will soon correct them.
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
  // The request's images with other batch keys are assumed to run in separate
  // batches.
  for (const auto& [key, images] : request.others) {
    if (holds_for(key)) state.own_others += profile_.Curve(key).Work(images);
  }
  state.work.earlier = state.drain.earlier = state.own_others;
  state.decoding = static_cast<int>(std::min<int64_t>(
      request.decoding,
      request.own_decoding +
          int64_t{request.own_decoding + CountOf(request.client) +
                  state.curve->best_size()} *
              request.other_clients));
  state.mates = state.decoding;
  const Urgency own_limit = {
      std::min(request.deadline - request.answer, request.start_by),
      std::numeric_limits<uint64_t>::max()};
  Urgency limit = own_limit;
  const double new_clients = NewClients(now);
  const bool is_busy = IsBusy(now);
  const auto own_tasks = waiting_.keys().find(request.key);
  if (own_tasks != waiting_.keys().end() && own_tasks->second.size() > 0) {
    const WaitingTasks::KeyTasks& waiting = own_tasks->second;
    const WaitingTasks::Line& line = waiting.line(request.priority);
    const int earlier =
        TurnsOf(line, *state.curve, request, own_limit, new_clients, is_busy)
            .earlier;
    // The request's images may join a batch of earlier tasks. The images then
    // run as early as the first task of this batch, so `limit` becomes the
    // urgency of this first task.
    const int best = state.curve->best_size();
    const int full = (state.decoding + earlier + request.images - 1) / best;
    if (full * best < std::min(earlier, line.size())) {
      limit = line.order().find_by_order(full * best)->first;
    }
    state.mates += earlier;
    state.others = std::max(0, waiting.size() - earlier);
    state.gap = waiting.gap.Mean(now);
  }
  for (const auto& [key, waiting] : waiting_.keys()) {
    if (waiting.size() == 0) continue;
    const BatchCurve& curve = profile_.Curve(key);
    const bool is_own = key == request.key;
    const Turns turns =
        TurnsOf(waiting.line(request.priority), curve, request,
                is_own ? own_limit : limit, new_clients, is_busy);
    int higher = 0, lower = 0;
    for (int i = 0; i < server::kPriorityCount; ++i) {
      const int size = waiting.lines[i].size();
      if (i < static_cast<int>(request.priority)) higher += size;
      if (i > static_cast<int>(request.priority)) lower += size;
    }
    const auto add = [&](int own, WorkAhead* work) {
      const absl::Duration with_higher = curve.Work(own + higher);
      work->higher += with_higher - curve.Work(own);
      work->lower += curve.Work(own + higher + lower) - with_higher;
      return curve.Work(own);
    };
    state.drain.earlier += add(turns.all, &state.drain);
    // `first` is the number of images with this batch key that must run until
    // the request is done. For the request's own key, it includes the request's
    // images. The images run in batches of the best size, and other waiting
    // tasks fill up the last batch. `filled` is therefore `first` rounded up to
    // full batches, but at most the number of waiting tasks.
    const int best = curve.best_size();
    const int first = turns.earlier + (is_own ? request.images : 0);
    const int filled =
        std::min(waiting.size(), (first + best - 1) / best * best);
    const absl::Duration earlier = add(filled, &state.work);
    if (!is_own) state.work.earlier += earlier;
  }
  return EstimateAdmission(state, request, now);
}

absl::Duration BatchQueue::Wait(absl::Time now) const {
  AdmissionRequest request;
  request.key = last_key_;
  request.client = kNewClient;
  return Estimate(request, now).start - now;
}

double BatchQueue::UsualClients(absl::Time now, int clients) const {
  const double age = absl::FDivDuration(now - clients_counted_, kLately);
  return clients + (usual_clients_ - clients) * std::exp(-age);
}

double BatchQueue::NewClients(absl::Time now) const {
  const int clients = active_clients();
  return std::max(0.0, clients - UsualClients(now, clients));
}

int BatchQueue::active_clients() const {
  return devices_[0]->With(
      [](const ClientTurns& turns) { return turns.active(); });
}

absl::Duration BatchQueue::Backlog() const {
  absl::Duration work;
  for (const auto& [key, waiting] : waiting_.keys()) {
    work += profile_.Curve(key).Work(waiting.size());
  }
  return work / slots_;
}

}  // namespace sfmamba::batching
