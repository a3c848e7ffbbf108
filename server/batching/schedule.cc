#include "server/batching/schedule.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace sfmamba::batching {

namespace {

// Two smaller batches are preferred to one larger if they cost at most 2 %
// more, because the first is answered earlier.
constexpr double kSame = 1.02;
// Least lead in fullness, as a part of the best rate, by which a line goes
// before the first one.
constexpr double kClearlyFuller = 0.05;

// A line whose batch may leave now.
struct Candidate {
  int line = 0;
  int images = 0;
  absl::Time limit;       // When the first task's batch should have ended.
  absl::Duration median;  // Its batch's duration.
  absl::Duration p95;
  double fullness = 1;  // Its images a second as a part of the best rate.
};

double Fullness(const BatchCurve& curve, int images) {
  if (!curve.is_known()) return 1;
  const int best = curve.best_size();
  return std::min(1.0, absl::FDivDuration(images * curve.Median(best),
                                          best * curve.Median(images)));
}

// How much longer than the batches before it every candidate can wait.
// `candidates` are in the order in which they would leave; `skipped` is not one
// of them.
absl::Duration Slack(const std::vector<Candidate>& candidates, size_t skipped,
                     absl::Time now) {
  absl::Duration slack = absl::InfiniteDuration();
  absl::Time start = now;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (i == skipped) continue;
    slack = std::min(slack, candidates[i].limit - start - candidates[i].p95);
    start += candidates[i].median;
  }
  return slack;
}

// Which of the candidates, which are in the order of their turns, leaves now.
size_t ChooseLine(const std::vector<Candidate>& candidates,
                  absl::Span<const WaitingLine> lines, absl::Time now) {
  const Candidate& first = candidates[0];
  const WaitingLine& line = lines[first.line];
  if (line.is_overdue) return 0;
  if (now - line.oldest > (first.limit - line.oldest) / 2) return 0;
  size_t chosen = 0;
  double fullest = first.fullness + kClearlyFuller;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const Candidate& other = candidates[i];
    if (other.fullness > fullest && line.gap <= other.median &&
        other.median <= Slack(candidates, i, now)) {
      fullest = other.fullness;
      chosen = i;
    }
  }
  return chosen;
}

}  // namespace

absl::string_view BatchTriggerName(BatchTrigger trigger) {
  static constexpr absl::string_view kNames[] = {"full", "delay", "drain"};
  return kNames[static_cast<int>(trigger)];
}

int ChooseSize(const ScheduleOptions& options, const WaitingLine& line) {
  const BatchCurve& curve = *line.curve;
  const int all = std::min(line.tasks, options.max_batch_size);
  const std::vector<int>& sizes = curve.efficient_sizes();
  const int efficient =
      *std::prev(std::upper_bound(sizes.begin(), sizes.end(), all));
  const int rest = all - efficient;
  if (rest == 0 || line.tasks > all) return efficient;
  const bool two_cost_the_same =
      curve.Median(efficient) + curve.Median(rest) <= kSame * curve.Median(all);
  // Whether the rest will have become a batch of that size, too.
  const bool refills = rest >= efficient ||
                       (efficient - rest) * line.gap <= curve.Median(efficient);
  return two_cost_the_same || refills ? efficient : all;
}

namespace {

// Shortest wait that is worth it: in a shorter one the thread would fall asleep
// to be woken at once.
constexpr absl::Duration kShortestWait = absl::Microseconds(100);

constexpr absl::Duration kLargestMargin = absl::Milliseconds(20);

// How long before it would become late a task is run: threads wake late, the
// later the busier the processor is. Who has waited long can spare more.
absl::Duration Margin(const WaitingLine& line) {
  return std::clamp((line.start_by - line.oldest) / 32, kScheduleMargin,
                    kLargestMargin);
}

}  // namespace

absl::Time LeaveAt(const ScheduleOptions& options, const WaitingLine& line) {
  const BatchCurve& curve = *line.curve;
  const absl::Time delayed = line.oldest + options.max_queue_delay;
  const auto latest = [&](int images) {
    return std::min(line.start_by, line.finish_by - curve.P95(images)) -
           Margin(line);
  };
  const std::vector<int>& sizes = curve.efficient_sizes();
  const auto next = std::upper_bound(sizes.begin(), sizes.end(), line.tasks);
  // A curve has no size above max_batch_size, so a full batch never waits.
  if (next == sizes.end()) return absl::InfinitePast();
  if (options.mode == BatchMode::kThroughput) {
    return std::min(delayed, latest(line.tasks));
  }
  const absl::Duration half = curve.Median(1) / 2;
  if (half < kShortestWait) return absl::InfinitePast();
  const absl::Time end = std::min({delayed, line.oldest + half, latest(*next)});
  return end - (*next - line.tasks) * line.gap;
}

namespace {

// The images of a trial in place of a batch of `images`; `images` if there
// should be none. The curve may be wrong about a trial, so its time is taken to
// be in proportion to the images.
int TryLarger(const ScheduleOptions& options, const WaitingLine& line,
              int images, absl::Time now) {
  const BatchCurve& curve = *line.curve;
  const int larger = std::min({2 * images, line.tasks, options.max_batch_size});
  const bool in_time =
      now + curve.P95(images) * larger / images <= line.finish_by;
  return in_time && curve.LargerAreOld(images, now) ? larger : images;
}

}  // namespace

Decision Decide(const ScheduleOptions& options,
                absl::Span<const WaitingLine> lines, absl::Time now,
                bool may_try) {
  Decision decision;
  std::vector<Candidate> candidates;
  for (int i = 0; i < static_cast<int>(lines.size()); ++i) {
    const absl::Time leave_at = LeaveAt(options, lines[i]);
    if (leave_at > now) {
      decision.wake = std::min(decision.wake, leave_at);
      continue;
    }
    const BatchCurve& curve = *lines[i].curve;
    const int images = ChooseSize(options, lines[i]);
    const absl::Time limit = std::min(lines[i].start_by, lines[i].finish_by);
    candidates.push_back({i, images, limit, curve.Median(images),
                          curve.P95(images), Fullness(curve, images)});
  }
  if (candidates.empty()) return decision;
  const Candidate& chosen = candidates[ChooseLine(candidates, lines, now)];
  const WaitingLine& line = lines[chosen.line];
  decision.line = chosen.line;
  decision.images =
      may_try ? TryLarger(options, line, chosen.images, now) : chosen.images;
  decision.is_trial = decision.images > chosen.images;
  const bool is_full = decision.images >= line.curve->best_size();
  decision.trigger = is_full ? BatchTrigger::kFull : BatchTrigger::kDelay;
  return decision;
}

}  // namespace sfmamba::batching
