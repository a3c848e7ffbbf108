// This file contains the steps of a Prediction for an image that becomes
// several model inputs.

#include <algorithm>
#include <memory>
#include <utility>

#include "base/steady_clock.h"
#include "server/errors/guarded.h"
#include "server/prediction/prediction.h"

namespace sfmamba::prediction {

void Prediction::PrepareParts(OpenItem open, server::MemoryHold memory,
                              image::DecodeWatch::Wanted wanted) {
  const int i = open.index();
  Item& item = items_[i];
  const image::DecodeWatch watch(env_.limits.image.max_decode_time,
                                 base::ThreadCpuTime, std::move(wanted));
  PartsToSubmit left = {MakeParts(std::move(open))};
  const auto submit = [&](const image::RgbImage& picture, int rows) {
    SubmitParts(&item, picture, rows, watch, &left);
  };
  absl::StatusOr<image::DecodedPicture> picture =
      server::Guarded([&]() -> absl::StatusOr<image::DecodedPicture> {
        return image::DecodePicture(item.source, env_.limits.image, watch,
                                    submit);
      });
  item.decode = base::SteadyNow() - item.decode_started - item.preprocess;
  if (picture.ok()) {
    item.frame = picture->frame();
    SourceDone(&item);
    env_.costs.Decoded(item.facts, item.decode);
    env_.metrics.ImageDecoded(item.facts.format, item.facts.pixels);
    SubmitParts(&item, picture->rgb, picture->rgb.height, watch, &left);
  }
  const absl::Status status = picture.ok() ? left.status : picture.status();
  if (!status.ok()) {
    left.parts->Fail(Undecoded(i, status));
    if (!request_.options.allow_partial_results) Drop();
  }
  if (picture.ok() && classifier_ != nullptr) {
    item.picture = std::move(picture->rgb);
  }
  picture = absl::CancelledError();  // Frees the picture.
  memory.Release();
  left.parts = nullptr;  // May destroy this object.
}

std::shared_ptr<ImageParts> Prediction::MakeParts(OpenItem open) {
  Item& item = items_[open.index()];
  item.collector = handler_->MakeCollector(model_->directory, item.facts);
  return std::make_shared<ImageParts>(
      item.facts.parts.size(), item.collector.get(),
      [this, open = std::move(open)](absl::Status status,
                                     std::vector<InputRun> runs) mutable {
        PartsDone(std::move(open), std::move(status), std::move(runs));
      });
}

void Prediction::SubmitParts(Item* item, const image::RgbImage& picture,
                             int rows, const image::DecodeWatch& watch,
                             PartsToSubmit* left) {
  const image::PixelRect seen =
      image::CropOf(item->source, {picture.height, picture.width});
  for (; left->next < item->facts.parts.size() && left->status.ok();
       ++left->next) {
    image::PixelRect part = item->facts.parts[left->next].region;
    part.left += seen.left;
    part.top += seen.top;
    if (part.top + part.height > rows) return;
    left->status = server::Guarded([&] {
      const absl::Time start = base::SteadyNow();
      absl::StatusOr<image::ImageBuffer> input =
          image::MakeInput(picture, part, model_->directory.config,
                           request_.options.resize, watch);
      item->preprocess += base::SteadyNow() - start;
      if (!input.ok()) return input.status();
      SubmitPart(item, left->next, *std::move(input), left->parts);
      return absl::OkStatus();
    });
  }
}

void Prediction::SubmitPart(Item* item, int part, image::ImageBuffer input,
                            std::shared_ptr<ImageParts> parts) {
  Admission& admission = item->admission;
  const int64_t bytes = item->facts.parts[part].input_bytes;
  InputRun run;
  batching::BatchTask task =
      MakeTask(std::move(input), admission.input_room.Split(1, bytes), &run);
  task.done = [this, item, part, run, parts = std::move(parts),
               memory = admission.input_memory.Split(bytes)](
                  absl::StatusOr<model::Result> result,
                  const batching::BatchInfo& batch) mutable {
    memory.Release();
    run.End(batch);
    // If partial results are not allowed, a failed part fails the whole
    // request. Drop() keeps the other parts from occupying batches.
    if (!result.ok() && !request_.options.allow_partial_results) Drop();
    // `last` may be the only remaining owner of the ImageParts object. The
    // destructor of ImageParts then calls PartsDone(), which may destroy this
    // Prediction.
    std::shared_ptr<ImageParts> last = std::move(parts);
    last->End(part, std::move(result), std::move(run));
    if (item->collector->CanAdvance()) CallCollector(item, std::move(last));
  };
  model_->executor->Submit(std::move(task));
}

void Prediction::SubmitCut(OpenItem open, image::ImageBuffer input) {
  Item& item = items_[open.index()];
  item.uncut = std::make_unique<UncutInput>();
  item.uncut->image = std::move(input);
  RunCollector(&item, MakeParts(std::move(open)));
}

void Prediction::CallCollector(Item* item, std::shared_ptr<ImageParts> parts) {
  if (item->uncut->calls.fetch_add(1) > 0) return;
  ScheduleCollector(item, std::move(parts));
}

void Prediction::ScheduleCollector(Item* item,
                                   std::shared_ptr<ImageParts> parts) {
  env_.finish_pool.Run(
      MakeWork(item->collector->AdvanceCost(), deadline_,
               [this, item, parts = std::move(parts)]() mutable {
                 // May destroy this object.
                 RunCollector(item, std::move(parts));
               }));
}

void Prediction::RunCollector(Item* item, std::shared_ptr<ImageParts> parts) {
  const int calls = item->uncut->calls.load();
  absl::Status status = CheckAlive("postprocess", deadline_);
  if (status.ok()) {
    status = server::Guarded([&] {
      if (item->collector->CanAdvance()) {
        const absl::Time start = base::SteadyNow();
        if (item->postprocess == absl::ZeroDuration()) {
          item->encode_started = start;
        }
        item->collector->Advance();
        item->postprocess += base::SteadyNow() - start;
      }
      SubmitWanted(item, parts);
      return absl::OkStatus();
    });
  }
  // After an error, the counter item->uncut->calls is not reduced and stays
  // above 0. CallCollector() therefore does not schedule the collector again.
  if (!status.ok()) return parts->Fail(status);
  if (item->collector->CanAdvance() ||
      item->uncut->calls.fetch_sub(calls) > calls) {
    ScheduleCollector(item, std::move(parts));
  }
}

void Prediction::SubmitWanted(Item* item,
                              const std::shared_ptr<ImageParts>& parts) {
  const std::vector<PartFacts>& all = item->facts.parts;
  UncutInput& uncut = *item->uncut;
  const int end = std::min<int>(all.size(), item->collector->Wanted());
  while (uncut.submitted < end) {
    const int part = uncut.submitted++;
    SubmitPart(item, part, image::CropInput(uncut.image, all[part].region),
               parts);
  }
  if (end < static_cast<int>(all.size())) return;
  uncut.image = {};
  item->admission.input_memory.Release();
}

void Prediction::PartsDone(OpenItem open, absl::Status status,
                           std::vector<InputRun> runs) {
  Item& item = items_[open.index()];
  InputRun& slowest = item.run;
  for (const InputRun& run : runs) {
    const absl::Duration queue = std::max(slowest.batch.queue, run.batch.queue);
    if (run.batch.inference >= slowest.batch.inference) slowest = run;
    slowest.batch.queue = queue;
  }
  item.part_runs = std::move(runs);
  StartAnswer(std::move(open), std::move(status), [](Item& item) {
    return item.collector->MakeEncoder(item.frame);
  });
}

}  // namespace sfmamba::prediction
