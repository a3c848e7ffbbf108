#include "server/batching/warm_up.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/types/span.h"
#include "base/steady_clock.h"
#include "server/host/processors.h"

namespace sfmamba::batching {
namespace {

// A batch rarely takes longer than its measured duration times this factor.
constexpr double kNoise = 1.25;
// The maximum number of measurements of one batch size.
constexpr size_t kMostRuns = 6;
// While other models serve requests, batches that are expected to take longer
// than this are not measured.
constexpr absl::Duration kLongTurn = absl::Milliseconds(20);
// While other models serve requests, no batch is measured if a probe (a test
// image) took longer than this. This limit is higher than kLongTurn, because
// probes run at low priority and on one CPU thread.
constexpr absl::Duration kLongProbe = absl::Seconds(1);

// Returns the median of all runs except the first. The first run is slower,
// because caches are cold. The median ignores runs that another program
// disturbed. `runs` has at least two elements.
absl::Duration WarmMedian(std::vector<absl::Duration> runs) {
  const auto first = runs.begin() + 1, middle = first + (runs.size() - 2) / 2;
  std::nth_element(first, middle, runs.end());
  return *middle;
}

absl::Status Stopped() { return absl::CancelledError("loading was stopped"); }

absl::Status NotFinite() {
  return absl::InternalError(
      "the network's values for a black image are not finite");
}

}  // namespace

WarmUp::WarmUp(const WarmUpOptions& options, const model::ModelConfig& config,
               int max_batch_size, bool on_cpu, DeviceTurns::Member* turns)
    : options_(options),
      config_(config),
      max_batch_size_(max_batch_size),
      on_cpu_(on_cpu),
      turns_(turns) {}

BatchLimits::Size WarmUp::size() const {
  const int side = config_.Padded(config_.image_size);
  return {side, side};
}

std::optional<DeviceTurns::Turn> WarmUp::TakeTurn(absl::Duration cost) {
  if (turns_ == nullptr) return std::nullopt;
  return turns_->Take(server::Priority::kLow, cost);
}

absl::Status WarmUp::Prepare(BatchRunner& runner, bool is_first) {
  // Usually, a context is prepared for batches of up to max_batch_size_ images.
  // In two cases, a context on a CPU is prepared only for batches of one image:
  // - Other models serve requests (`turns_` is not null) and should not wait
  //   long.
  // - The context is not the first. The first context prepares the parts that
  //   all contexts share.
  // If other models serve requests on the CPU and there are probes, this
  // function does nothing. The probes then prepare the shared parts.
  const bool one = on_cpu_ && (turns_ != nullptr || !is_first);
  if (one && turns_ != nullptr && !options_.probes.empty()) {
    return absl::OkStatus();
  }
  const auto turn = TakeTurn(absl::ZeroDuration());
  return runner.Prepare(size(), one ? 1 : max_batch_size_);
}

absl::Status WarmUp::RunProbes(BatchRunner& runner,
                               const std::function<Runner()>& make_unprepared) {
  if (turns_ == nullptr || !on_cpu_) {
    return RunProbesHere(runner, /*takes_turns=*/true);
  }
  absl::Status status;
  options_.background->Run([&] {
    const Runner beside = make_unprepared();
    status = beside.ok() ? RunProbesHere(**beside, /*takes_turns=*/false)
                         : beside.status();
  });
  return status;
}

absl::Status WarmUp::RunProbesHere(BatchRunner& runner, bool takes_turns) {
  absl::Status status;
  for (const Probe& probe : options_.probes) {
    if (options_.stop()) return Stopped();
    const model::ModelInput input = probe.input();
    const std::optional<DeviceTurns::Turn> turn =
        takes_turns ? TakeTurn(absl::ZeroDuration()) : std::nullopt;
    const absl::Time start = base::SteadyNow();
    runner.Run({config_.Padded(input.height), config_.Padded(input.width)},
               absl::MakeConstSpan(&input, 1),
               [&](size_t, absl::StatusOr<model::Result> result,
                   const BatchRunner::Progress&) {
                 status = result.ok() ? probe.check(*result) : result.status();
               });
    if (!status.ok()) return status;
    longest_probe_ = std::max(longest_probe_, base::SteadyNow() - start);
  }
  return status;
}

absl::StatusOr<std::vector<BatchTime>> WarmUp::Measure(BatchRunner& runner) {
  std::vector<BatchTime> times;
  // A dense model's batches are not measured, because its images have many
  // sizes and take a long time.
  if (config_.task != model::VisionTask::kClassification) return times;
  if (turns_ != nullptr && longest_probe_ > kLongProbe) return times;
  BatchKey key;
  std::tie(key.height, key.width) = size();
  // On a CPU, `enough` images run at once. The duration of a larger batch is a
  // multiple of the duration of `enough` images.
  const int enough = on_cpu_ ? server::UsableProcessors() : max_batch_size_;
  const auto are_enough = [&] {
    return !times.empty() && times.back().images >= enough;
  };
  absl::Duration left = options_.profile_budget;
  absl::Duration expected;  // The expected duration of the next batch.
  for (int images = 1; left > absl::ZeroDuration() && !are_enough();
       images = std::min(2 * images, max_batch_size_)) {
    if (turns_ != nullptr && expected > kLongTurn) break;
    const absl::StatusOr<std::optional<absl::Duration>> median =
        MeasureSize(runner, images, expected, &left);
    if (!median.ok()) return median.status();
    if (!median->has_value()) return times;
    times.push_back({key, images, **median, **median * kNoise});
    if (images == max_batch_size_) break;
    expected = 2 * **median;
  }
  if (on_cpu_ && are_enough()) AddMultiples(max_batch_size_, &times);
  return times;
}

absl::StatusOr<std::optional<absl::Duration>> WarmUp::MeasureSize(
    BatchRunner& runner, int images, absl::Duration expected,
    absl::Duration* left) {
  std::vector<absl::Duration> runs;
  absl::Duration spent;
  const auto again = [&] {
    return runs.size() < kMostRuns && spent < options_.profile_budget / 4 &&
           (turns_ == nullptr || expected <= kLongTurn);
  };
  while (runs.size() < 2 || again()) {
    if (options_.stop()) return Stopped();
    bool finite = true;
    const auto turn = TakeTurn(expected);
    const absl::StatusOr<absl::Duration> took =
        runner.Measure(size(), images, [&finite](const model::Result& result) {
          finite = finite && IsFinite(result);
        });
    if (!finite) return NotFinite();
    if (!took.ok()) return std::nullopt;
    runs.push_back(expected = *took);
    spent += *took;
  }
  *left -= spent;
  return WarmMedian(std::move(runs));
}

}  // namespace sfmamba::batching
