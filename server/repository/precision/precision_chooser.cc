#include "server/repository/precision/precision_chooser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/steady_clock.h"
#include "server/batching/device_turns.h"
#include "server/repository/model_version.h"

namespace sfmamba::repository {
namespace {

using batching::DeviceTurns;
using observability::LogModule;
using Images = std::vector<batching::Executor::Probe>;

absl::Status Stopped() { return absl::CancelledError("loading was stopped"); }

// BF16 is refused if it takes kSlower times as long as FP32 and kMuchSlower
// longer: both, so that noise in a fast model's time does not decide.
constexpr double kSlower = 1.15;
constexpr absl::Duration kMuchSlower = absl::Milliseconds(1);
// Most timed runs of the last image. None begins after kEnough.
constexpr int kRuns = 3;
constexpr absl::Duration kEnough = absl::Milliseconds(500);

struct Trial {
  std::vector<model::Result> answers;  // One for each image.
  absl::Duration time;                 // The shortest of the last image.
};

// Runs the images, each in a turn of its device; without `devices` in none.
absl::StatusOr<Trial> TryOn(model::VisionModel& model, const Images& images,
                            const std::function<bool()>& stop,
                            batching::Devices* devices) {
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> context =
      model.MakeContext(0);
  if (!context.ok()) return context.status();
  std::unique_ptr<DeviceTurns::Member> turns;
  if (devices != nullptr) {
    turns = devices->Get(model.context_device(0), /*at_once=*/1).Join();
  }
  Trial trial;
  const auto run = [&](const batching::Executor::Probe& image,
                       model::ExecutionContext::Done done)
      -> absl::StatusOr<absl::Duration> {
    if (stop()) return Stopped();
    const model::ModelInput input = image.input();
    std::optional<DeviceTurns::Turn> turn;
    if (turns != nullptr) {
      turn.emplace(turns->Take(server::Priority::kLow, absl::ZeroDuration()));
    }
    model::RunInfo info;
    const absl::Time start = base::SteadyNow();
    const absl::Status status =
        (*context)->Run(absl::MakeConstSpan(&input, 1), &info, done);
    if (!status.ok()) return status;
    return base::SteadyNow() - start;
  };
  absl::Duration spent;
  for (const batching::Executor::Probe& image : images) {
    const auto took = run(image, [&trial](model::Result answer) {
      trial.answers.push_back(std::move(answer));
    });
    if (!took.ok()) return took.status();
    // Earlier images warm the model up; only the last one's time counts.
    trial.time = spent = *took;
  }
  for (int i = 1; i < kRuns && spent < kEnough; ++i) {
    const auto took = run(images.back(), [](const model::Result&) {});
    if (!took.ok()) return took.status();
    trial.time = std::min(trial.time, *took);
    spent += *took;
  }
  return trial;
}

std::string Milliseconds(absl::Duration time) {
  return absl::StrFormat("%.3g", absl::ToDoubleMilliseconds(time));
}

absl::StatusOr<Trial> Try(model::VisionModel& model, const Images& images,
                          const PrecisionChooser::Job& job) {
  const bool beside = job.background != nullptr &&
                      absl::StartsWith(model.context_device(0), "cpu");
  if (!beside) return TryOn(model, images, job.stop, job.devices.get());
  absl::StatusOr<Trial> trial;
  job.background->Run(
      [&] { trial = TryOn(model, images, job.stop, /*devices=*/nullptr); });
  return trial;
}

}  // namespace

absl::StatusOr<std::unique_ptr<model::VisionModel>> PrecisionChooser::Load(
    const Job& job) {
  auto reduced = job.load(model::Precision::kBFloat16);
  if (!reduced.ok()) return reduced.status();
  if ((*reduced)->precision() == model::Precision::kFloat32) {
    log_.Info(LogModule::kModels, "the precision is chosen",
              {{"model", job.model},
               {"precision", "FP32"},
               {"why", "this processor does not compute BF16"}});
    return reduced;
  }
  const absl::StatusOr<PrecisionCheck> check = Check(job, **reduced);
  if (!check.ok()) return check.status();
  if (check->allowed) {
    log_.Info(LogModule::kModels, "the precision is chosen",
              {{"model", job.model},
               {"precision", PrecisionName((*reduced)->precision())},
               {"why", check->figures}});
    return reduced;
  }
  log_.Warning(
      LogModule::kModels, "BF16 is not as good as FP32",
      {{"model", job.model}, {"precision", "FP32"}, {"why", check->figures}});
  reduced->reset();  // FP32's weights need the memory.
  if (job.stop()) return Stopped();
  return job.load(model::Precision::kFloat32);
}

absl::StatusOr<PrecisionCheck> PrecisionChooser::Check(
    const Job& job, model::VisionModel& reduced) {
  const std::string key =
      KeyOf("precision 1", job.content, reduced.device(), build_);
  const std::optional<PrecisionCheck> known =
      FromRecord(records_.Read(job.model, key).value_or(""));
  if (known.has_value()) return *known;
  if (!job.has_room()) {
    return PrecisionCheck{false, "there is no memory to compare them"};
  }
  absl::StatusOr<PrecisionCheck> found = Compare(job, reduced);
  if (absl::IsResourceExhausted(found.status())) {
    return PrecisionCheck{false, "there is no memory to compare them"};
  }
  // A lack of memory, above, is not recorded: the next start may have more.
  if (found.ok()) records_.Write(job.model, key, ToRecord(*found));
  return found;
}

absl::StatusOr<PrecisionCheck> PrecisionChooser::Compare(
    const Job& job, model::VisionModel& reduced) {
  const absl::StatusOr<Images> images = job.images();
  if (!images.ok()) return images.status();
  const auto tried = Try(reduced, *images, job);
  if (absl::IsCancelled(tried.status())) return tried.status();
  if (!tried.ok()) {
    return PrecisionCheck{
        false, absl::StrCat("BF16 fails: ", tried.status().message())};
  }
  if (job.stop()) return Stopped();
  const auto full = job.load(model::Precision::kFloat32);
  if (!full.ok()) return full.status();
  const auto expected = Try(**full, *images, job);
  if (!expected.ok()) return expected.status();
  PrecisionCheck check = ComparePrecisions(tried->answers, expected->answers);
  absl::StrAppend(&check.figures, ", ", Milliseconds(tried->time),
                  " ms an image, ", Milliseconds(expected->time), " in FP32");
  check.allowed &= tried->time <= std::max(kSlower * expected->time,
                                           expected->time + kMuchSlower);
  return check;
}

}  // namespace sfmamba::repository
