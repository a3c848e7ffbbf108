#include "server/prediction/prediction.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/proto_duration.h"
#include "model/config.h"
#include "server/errors/error.h"
#include "server/errors/guarded.h"
#include "server/errors/reasons.h"
#include "server/prediction/deadline.h"
#include "server/prediction/item_counts.h"
#include "server/shares/client_shares.h"

namespace sfmamba::prediction {
namespace {

std::string ClientName(const PredictionRequest& request) {
  return request.call.caller.name.empty()
             ? std::string(server::ClientOf(request.call.peer))
             : request.call.caller.name;
}

std::unique_ptr<const TaskHandler> HandlerOf(const PredictionRequest& request) {
  const auto* classify = std::get_if<v1::ClassifyParams>(&request.params);
  if (classify != nullptr) {
    return MakeHandler(*classify, request.include_logits);
  }
  return std::visit([](const auto& params) { return MakeHandler(params); },
                    request.params);
}

}  // namespace

Prediction::Prediction(const PredictionEnvironment& environment,
                       PredictionRequest request, ResponseWriter* writer,
                       const Prediction* parent)
    : env_(environment),
      request_(std::move(request)),
      writer_(*writer),
      client_(ClientName(request_)),
      handler_(HandlerOf(request_)),
      record_(request_.method, request_.message_bytes, request_.call.peer,
              request_.call.traceparent, &environment.metrics,
              &environment.log),
      trace_(environment.tracer == nullptr
                 ? nullptr
                 : environment.tracer->Begin(record_.trace(),
                                             request_.call.tracestate)),
      deadline_(DeadlineOf(request_.call.deadline, record_.start(),
                           environment.default_deadline,
                           environment.max_deadline)),
      queue_deadline_(std::min(
          deadline_, record_.start() + request_.options.max_queue_wait.value_or(
                                           absl::InfiniteDuration()))),
      group_(parent != nullptr ? parent->group_
                               : environment.decode_pool.NewGroup()),
      dropped_(parent != nullptr ? parent->dropped_
                                 : std::make_shared<std::atomic<bool>>(false)) {
}

Prediction::OpenItem::~OpenItem() {
  if (prediction_ != nullptr) {
    End(absl::InternalError("the image could not be handled"));
  }
}

void Prediction::Start(const absl::Status& serving) {
  record_.set_client(client_);
  record_.set_images(request_.images);
  if (request_.call.deadline == absl::InfiniteFuture() &&
      env_.without_deadline.Insert(client_)) {
    env_.log.Info(observability::LogModule::kRequests,
                  "a client sets no deadlines: the default applies",
                  {{"client", client_},
                   {"seconds", absl::ToDoubleSeconds(env_.default_deadline)}});
  }
  Begin(serving.ok() ? server::Guarded([this] { return CheckRequest(); })
                     : serving);
}

void Prediction::Begin(const absl::Status& checked) {
  const absl::Status status =
      checked.ok() ? server::Guarded([this] { return Admit(); }) : checked;
  if (!status.ok()) {
    // If the request has too many images, the images were not checked. The
    // whole request then counts as one failed image.
    const int count =
        request_.images > env_.limits.max_images ? 1 : request_.images;
    for (int i = 0; i < count && version_ != nullptr; ++i) {
      CountItem(status, version_->metrics().get());
    }
    return Finish(status);
  }
  const int count = items_.size();
  writer_.Start(version_->name(), count);
  if (request_.options.validate_only) {
    WriteErrors();
    return Finish(absl::OkStatus());
  }
  pending_.store(count);
  sources_left_.store(count);
  for (int i = 0; i < count; ++i) {
    OpenItem open(this, i);
    if (items_[i].status.ok()) {
      Schedule(std::move(open));
    } else {
      open.End(items_[i].status);
    }
  }
}

void Prediction::Cancel() {
  client_gone_.store(true);
  Drop();
}

void Prediction::Schedule(OpenItem open) {
  observability::Metrics& metrics = env_.metrics;
  const Item& item = items_[open.index()];
  const ImageFacts& facts = item.facts;
  server::Work work =
      MakeWork(env_.costs.Decode(facts), queue_deadline_,
               [this, &metrics, open = std::move(open)]() mutable {
                 metrics.DecodeStarted();
                 const auto done =
                     absl::MakeCleanup([&metrics] { metrics.DecodeDone(); });
                 Prepare(std::move(open));  // May destroy this object.
               });
  work.bytes = facts.decode_bytes;
  metrics.DecodeQueued();
  env_.decode_pool.Run(std::move(work));
}

void Prediction::Prepare(OpenItem open) {
  Item& item = items_[open.index()];
  item.admission.decode_room.Release();
  absl::Status status = CheckAlive("decode", queue_deadline_);
  if (!status.ok()) return open.End(std::move(status));
  const absl::Time start = item.decode_started = base::SteadyNow();
  // Take() cannot fail, because the decode pool runs this work only while
  // enough memory for decoding is free.
  server::MemoryHold memory =
      env_.memory.Take(server::MemoryUse::kDecode, item.facts.decode_bytes)
          .value_or(server::MemoryHold());
  const auto wanted = [this] {
    return CheckAlive("decode", queue_deadline_).ok();
  };
  if (!item.facts.parts.empty() && !item.facts.parts_of_input) {
    return PrepareParts(std::move(open), std::move(memory), wanted);
  }
  absl::StatusOr<image::PreparedInput> input =
      server::Guarded([&]() -> absl::StatusOr<image::PreparedInput> {
        // If the request asks for crops of the objects, MakeInput() stores the
        // decoded picture in item.picture.
        return image::MakeInput(
            item.source, model_->directory.config, request_.options.resize,
            env_.limits.image, wanted, &model_->executor->pixels(),
            classifier_ != nullptr ? &item.picture : nullptr);
      });
  memory.Release();
  if (!input.ok()) {
    item.decode = base::SteadyNow() - start;
    return open.End(Undecoded(open.index(), input.status()));
  }
  SourceDone(&item);
  item.frame = input->frame;
  item.decode = input->decode;
  item.preprocess = input->preprocess;
  env_.costs.Decoded(item.facts, item.decode + item.preprocess);
  env_.metrics.ImageDecoded(item.facts.format, item.facts.pixels);
  status = CheckAlive("decode", queue_deadline_);
  if (!status.ok()) return open.End(std::move(status));
  if (item.facts.parts_of_input) {
    SubmitCut(std::move(open), std::move(input->image));
  } else {
    Submit(std::move(open), std::move(input->image));
  }
}

absl::Status Prediction::Undecoded(int i, const absl::Status& status) const {
  if (absl::IsCancelled(status)) {
    const absl::Status alive = CheckAlive("decode", queue_deadline_);
    return alive.ok() ? status : alive;
  }
  env_.metrics.ImageFailed(items_[i].facts.format,
                           server::GetErrorDetail(status).reason);
  return AtImage(i, status);
}

batching::BatchTask Prediction::MakeTask(image::ImageBuffer input,
                                         batching::Reservation room,
                                         InputRun* run) const {
  const model::ModelConfig& config = model_->directory.config;
  batching::BatchTask task;
  // Computes the batch key from the final size of the input. The size in
  // ImageFacts is only an estimate that was made before decoding.
  task.key = KeyOf(config, {input.height, input.width},
                   input.pixels.empty() ? batching::ImageType::kFloat32
                                        : batching::ImageType::kUint8);
  task.image = std::move(input);
  task.priority = request_.options.priority;
  task.deadline = queue_deadline_;
  task.finish_by = deadline_ - longest_answer_;
  task.cancelled = dropped_;
  task.reservation = std::move(room);
  handler_->FillTask(model_->directory, &task);
  if (trace_ != nullptr) {
    run->span = observability::NewSpanId();
    task.trace = {trace_, run->span};
  }
  run->submitted = base::SteadyNow();
  return task;
}

void Prediction::Submit(OpenItem open, image::ImageBuffer input) {
  Item& item = items_[open.index()];
  batching::BatchTask task = MakeTask(
      std::move(input), std::move(item.admission.input_room), &item.run);
  task.done = [this, open = std::move(open)](
                  absl::StatusOr<model::Result> result,
                  const batching::BatchInfo& batch) mutable {
    Item& item = items_[open.index()];
    item.run.End(batch);
    item.admission.input_memory.Release();
    StartAnswer(std::move(open), result.status(), [&](Item& item) {
      return handler_->MakeEncoder(model_->directory, *std::move(result),
                                   item.frame);
    });
  };
  model_->executor->Submit(std::move(task));
}

void Prediction::EndItem(int i, absl::Status status) {
  Item& item = items_[i];
  SourceDone(&item);
  item.picture = image::RgbImage();
  item.admission = Admission();
  if (!status.ok()) item.answer_memory.Release();
  if (absl::IsCancelled(status) && client_gone_.load() &&
      HungUpAtDeadline(record_.start(), deadline_, env_.clock())) {
    status = server::Expired(StageOf(status, "queue"));
  }
  observability::ModelMetrics* const metrics = version_->metrics().get();
  CountItem(status, metrics);
  const bool tensor = item.source.tensor() != nullptr;
  CountStages(
      status,
      {tensor ? absl::ZeroDuration() : item.decode, item.preprocess,
       item.run.batch.queue, item.run.batch.inference, item.postprocess},
      metrics);
  if (!status.ok() && !request_.options.allow_partial_results) {
    Drop();
  }
  item.status = std::move(status);
  if (trace_ != nullptr) item.ended = base::SteadyNow();
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) FinishAll();
}

void Prediction::SourceDone(Item* item) {
  if (std::exchange(item->source_done, true)) return;
  if (sources_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    ReleaseRequest();
  }
}

void Prediction::ReleaseRequest() {
  if (std::exchange(request_released_, true)) return;
  writer_.ReleaseRequest();
  message_memory_.Release();
}

void Prediction::Drop() {
  if (dropped_->exchange(true)) return;
  env_.decode_pool.Expedite(group_);
  env_.finish_pool.Expedite(group_);
}

void Prediction::Finish(const absl::Status& status) {
  ReleaseRequest();
  if (status.ok() && !items_.empty() &&
      std::none_of(items_.begin(), items_.end(), IsAnswered)) {
    record_.CountAs(items_[0].status);
  }
  if (model_ != nullptr && !request_.options.validate_only) {
    CountRequest(status);
  }
  const absl::Status answer = record_.Finish(status);
  EndTrace(answer);
  writer_.Done(answer);
}

void Prediction::FinishAll() {
  absl::Status status = Outcome();
  if (status.ok()) {
    WriteErrors();
    if (request_.options.include_timing) WriteTiming();
    status = CheckSize(writer_.Bytes());
  }
  Finish(status);
}

absl::Status Prediction::Outcome() const {
  if (client_gone_.load()) {
    return HungUpAtDeadline(record_.start(), deadline_, env_.clock())
               ? server::Expired("queue")
               : server::Cancelled("queue");
  }
  if (request_.options.allow_partial_results) return absl::OkStatus();
  // If one image fails, the other images are dropped and end with CANCELLED.
  // The first error that is not CANCELLED is therefore the cause.
  for (const Item& item : items_) {
    if (!item.status.ok() && !absl::IsCancelled(item.status)) {
      return item.status;
    }
  }
  return absl::OkStatus();
}

void Prediction::WriteErrors() {
  for (size_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].status.ok()) writer_.SetError(i, items_[i].status);
  }
}

Prediction::Timing Prediction::SlowestTiming() const {
  Timing timing;
  for (const Item& item : items_) {
    timing.decode = std::max(timing.decode, item.decode);
    timing.preprocess = std::max(timing.preprocess, item.preprocess);
    timing.postprocess = std::max(timing.postprocess, item.postprocess);
    const absl::Duration queue =
        std::max(timing.batch.queue, item.run.batch.queue);
    if (item.run.batch.inference >= timing.batch.inference) {
      timing.batch = item.run.batch;
    }
    timing.batch.queue = queue;
  }
  timing.total = base::SteadyNow() - record_.start();
  return timing;
}

void Prediction::WriteTiming() {
  const Timing timing = SlowestTiming();
  v1::Timing proto;
  base::ToProto(timing.decode, proto.mutable_decode());
  base::ToProto(timing.preprocess, proto.mutable_preprocess());
  base::ToProto(timing.batch.queue, proto.mutable_queue());
  base::ToProto(timing.batch.inference, proto.mutable_inference());
  base::ToProto(timing.postprocess, proto.mutable_postprocess());
  base::ToProto(timing.total, proto.mutable_total());
  proto.set_batch_size(timing.batch.batch_size);
  proto.set_padded_batch_size(timing.batch.padded_batch_size);
  proto.set_fold_factor(timing.batch.fold_factor);
  proto.set_bucket(timing.batch.size_class);
  proto.set_device(model_->executor->device());
  writer_.SetTiming(proto);
}

void Prediction::CountRequest(const absl::Status& status) const {
  observability::InferenceStatistics& statistics =
      version_->metrics()->statistics();
  const Timing timing = SlowestTiming();
  const int answered = std::count_if(items_.begin(), items_.end(), IsAnswered);
  if (!status.ok() || answered == 0) {
    statistics.RequestFailed(timing.total);
    return;
  }
  statistics.RequestSucceeded(
      answered,
      {timing.total, timing.batch.queue, timing.decode + timing.preprocess,
       timing.batch.inference, timing.postprocess});
}

server::Work Prediction::MakeWork(absl::Duration cost, absl::Time deadline,
                                  absl::AnyInvocable<void()> run) const {
  server::Work work;
  work.group = group_;
  work.priority = request_.options.priority;
  work.cost = cost;
  work.deadline = deadline;
  work.run = std::move(run);
  return work;
}

absl::Status Prediction::CheckAlive(absl::string_view stage,
                                    absl::Time deadline) const {
  if (dropped_->load()) return server::Cancelled(stage);
  if (env_.clock() >= deadline) return server::Expired(stage);
  return absl::OkStatus();
}

absl::Status Prediction::CheckSize(int64_t bytes) const {
  const int64_t most =
      std::min(env_.max_response_bytes, request_.call.max_response_bytes);
  if (bytes <= most) return absl::OkStatus();
  return server::ResponseTooLarge(bytes, most, handler_->SmallerResponse());
}

}  // namespace sfmamba::prediction
