#include "server/repository/precision/precision_chooser.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/batching/device_turns.h"
#include "server/repository/model_version.h"

namespace sfmamba::repository {
namespace {

using batching::DeviceTurns;
using observability::LogModule;
using Images = std::vector<batching::Executor::Probe>;

absl::Status Stopped() { return absl::CancelledError("loading was stopped"); }

using Answers = absl::StatusOr<std::vector<model::Result>>;

// The model's answers, one for each image. Without `devices` they wait for no
// turns.
Answers AnswersOn(model::VisionModel& model, const Images& images,
                  const std::function<bool()>& stop,
                  batching::Devices* devices) {
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> context =
      model.MakeContext(0);
  if (!context.ok()) return context.status();
  std::unique_ptr<DeviceTurns::Member> turns;
  if (devices != nullptr) {
    turns = devices->Get(model.context_device(0), /*at_once=*/1).Join();
  }
  std::vector<model::Result> answers;
  for (const batching::Executor::Probe& image : images) {
    if (stop()) return Stopped();
    model::ModelInput input;
    input.height = image.height;
    input.width = image.width;
    input.pixels = image.pixels.data();
    std::optional<DeviceTurns::Turn> turn;
    if (turns != nullptr) {
      turn.emplace(turns->Take(server::Priority::kLow, absl::ZeroDuration()));
    }
    model::RunInfo info;
    const absl::Status status =
        (*context)->Run(absl::MakeConstSpan(&input, 1), &info,
                        [&answers](model::Result answer) {
                          answers.push_back(std::move(answer));
                        });
    if (!status.ok()) return status;
  }
  return answers;
}

Answers AnswersOf(model::VisionModel& model, const Images& images,
                  const PrecisionChooser::Job& job) {
  const bool beside = job.background != nullptr &&
                      absl::StartsWith(model.context_device(0), "cpu");
  if (!beside) return AnswersOn(model, images, job.stop, job.devices.get());
  Answers answers;
  job.background->Run([&] {
    answers = AnswersOn(model, images, job.stop, /*devices=*/nullptr);
  });
  return answers;
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
      LogModule::kModels, "BF16 is not close enough to FP32",
      {{"model", job.model}, {"precision", "FP32"}, {"why", check->figures}});
  reduced->reset();  // Its memory is needed.
  if (job.stop()) return Stopped();
  return job.load(model::Precision::kFloat32);
}

absl::StatusOr<PrecisionCheck> PrecisionChooser::Check(
    const Job& job, model::VisionModel& reduced) {
  const PrecisionKey key = {job.content, reduced.device(), build_};
  const std::optional<PrecisionCheck> known = records_.Read(job.model, key);
  if (known.has_value()) return *known;
  if (!job.has_room()) {
    return PrecisionCheck{false, "there is no memory to compare them"};
  }
  absl::StatusOr<PrecisionCheck> found = Compare(job, reduced);
  if (absl::IsResourceExhausted(found.status())) {
    return PrecisionCheck{false, "there is no memory to compare them"};
  }
  if (found.ok()) records_.Write(job.model, key, *found);
  return found;
}

absl::StatusOr<PrecisionCheck> PrecisionChooser::Compare(
    const Job& job, model::VisionModel& reduced) {
  const absl::StatusOr<Images> images = job.images();
  if (!images.ok()) return images.status();
  const auto answers = AnswersOf(reduced, *images, job);
  if (absl::IsCancelled(answers.status())) return answers.status();
  if (!answers.ok()) {
    return PrecisionCheck{
        false, absl::StrCat("BF16 fails: ", answers.status().message())};
  }
  if (job.stop()) return Stopped();
  const auto full = job.load(model::Precision::kFloat32);
  if (!full.ok()) return full.status();
  const auto expected = AnswersOf(**full, *images, job);
  if (!expected.ok()) return expected.status();
  return ComparePrecisions(*answers, *expected);
}

}  // namespace sfmamba::repository
