#include "server/batching/schedule.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace sfmamba::batching {

namespace {

// Two smaller batches are preferred to one larger batch if the two together
// take at most kSame times as long as the larger batch. The images of the first
// batch are then answered earlier.
constexpr double kSame = 1.02;
// By default, the first line (see WaitingLine) goes first. Another line goes
// first only if its batch is clearly more efficient. The Candidate::fullness of
// the other line must then exceed the fullness of the first line by more than
// this value.
constexpr double kClearlyFuller = 0.05;

// A line (a group of waiting images, see WaitingLine) whose LeaveAt() has
// passed, so that its next batch can leave now.
struct Candidate {
  int line = 0;
  int images = 0;
  // The time by which the batch should end. It is the earlier of the line's
  // start_by and finish_by.
  absl::Time limit;
  absl::Duration median;  // The expected duration of the batch.
  absl::Duration p95;
  // The batch's images per second, relative to a batch of the most efficient
  // size.
  double fullness = 1;
};

double Fullness(const BatchCurve& curve, int images) {
  if (!curve.is_known()) return 1;
  const int best = curve.best_size();
  return std::min(1.0, absl::FDivDuration(images * curve.Median(best),
                                          best * curve.Median(images)));
}

// Returns by how long the batches of all candidates can be delayed if each
// batch must still end by its limit. The batches run one after another in the
// order of `candidates`. The candidate with index `skipped` is ignored.
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

// Returns the index of the candidate that leaves now. `candidates` are in the
// order of their turns.
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
  // True if the remaining tasks will soon fill a second batch of `efficient`
  // images.
  const bool refills = rest >= efficient ||
                       (efficient - rest) * line.gap <= curve.Median(efficient);
  return two_cost_the_same || refills ? efficient : all;
}

namespace {

// A shorter wait is not useful, because a thread needs about this long to fall
// asleep and wake up.
constexpr absl::Duration kShortestWait = absl::Microseconds(100);

constexpr absl::Duration kLargestMargin = absl::Milliseconds(20);

// Returns the safety margin of the line's first task. The task should start
// this long before its latest start time. The margin is necessary, because
// threads wake late, especially on a busy CPU. The margin grows with the time
// that the task may wait.
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
  // If no efficient size is larger than the number of waiting tasks, waiting
  // would not make the batch more efficient.
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

// Decides whether a trial should replace the next batch, which would have
// `images` images. A trial is a larger batch than the estimates recommend. It
// measures how long larger batches take (see Decide()). Returns the number of
// images of the trial. If there should be no trial, returns `images`. The
// estimate for the trial's size may be wrong. The trial's duration is therefore
// assumed to be proportional to its number of images.
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
