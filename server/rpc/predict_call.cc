#include "server/rpc/predict_call.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/proto_duration.h"
#include "base/steady_clock.h"
#include "server/base/error.h"
#include "server/base/grpc_status.h"
#include "server/batching/batch_task.h"
#include "server/image/image_input.h"
#include "server/prediction/deadline.h"

namespace sfmamba::rpc {
namespace {

// Runs `fn`; an exception becomes INTERNAL. Its text may name anything and
// stays here.
template <typename Fn>
auto Guarded(const Fn& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const std::exception&) {
    return absl::InternalError("the image could not be handled");
  }
}

// The error of the i-th image: its field is a path of the request.
absl::Status AtImage(int i, const absl::Status& status) {
  server::ErrorDetail detail = server::GetErrorDetail(status);
  detail.field = absl::StrCat("images[", i, "]", detail.field);
  const std::string message =
      absl::StrCat(detail.field, ": ", status.message());
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return server::MakeError(status.code(), message, std::move(detail));
}

observability::ItemOutcome OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return observability::ItemOutcome::kOk;
    case absl::StatusCode::kResourceExhausted:
      return observability::ItemOutcome::kRejected;
    case absl::StatusCode::kDeadlineExceeded:
      return observability::ItemOutcome::kExpired;
    case absl::StatusCode::kCancelled:
      return observability::ItemOutcome::kCancelled;
    default:
      return observability::ItemOutcome::kError;
  }
}

}  // namespace

PredictCall::PredictCall(observability::Method method, model::VisionTask task,
                         const CallEnvironment& environment,
                         grpc::CallbackServerContext* context,
                         const RequestParts& request)
    : task_(task),
      env_(environment),
      request_(request),
      partial_(request.options.allow_partial_results()),
      record_(method, request.message, context, &environment.metrics,
              &environment.log),
      deadline_(prediction::SteadyDeadline(
          context->deadline(), absl::Now(), record_.start(),
          environment.default_deadline, environment.max_deadline)),
      queue_deadline_(
          request.options.has_max_queue_wait()
              ? std::min(deadline_,
                         record_.start() +
                             base::FromProto(request.options.max_queue_wait()))
              : deadline_) {
  const bool has_deadline =
      context->deadline() != std::chrono::system_clock::time_point::max();
  if (has_deadline || !env_.without_deadline.Insert(context->peer())) return;
  env_.log.Info(observability::LogModule::kRequests,
                "a client sets no deadlines: the default applies",
                {{"peer", context->peer()},
                 {"seconds", absl::ToDoubleSeconds(env_.default_deadline)}});
}

void PredictCall::Start(const absl::Status& serving) {
  record_.set_images(request_.images.size());
  const absl::Status status =
      serving.ok() ? Guarded([this] { return Admit(); }) : serving;
  if (!status.ok()) {
    for (int i = 0; i < request_.images.size() && version_ != nullptr; ++i) {
      CountItem(status);
    }
    FinishEarly(status);
    return;
  }
  const int count = items_.size();
  StartResponse(version_->name(), count);
  if (request_.options.validate_only()) {
    FillErrors();
    FinishEarly(absl::OkStatus());
    return;
  }
  pending_.store(count);
  for (int i = 0; i < count; ++i) {
    if (items_[i].status.ok()) {
      Schedule(i);
    } else {
      EndItem(i, items_[i].status);
    }
  }
}

absl::Status PredictCall::Admit() {
  absl::Status status = prediction::ValidateRequestId(request_.request_id);
  if (!status.ok()) return status;
  record_.set_request_id(request_.request_id);
  auto version = env_.repository.Find(request_.model, "model", task_);
  if (!version.ok()) return version.status();
  version_ = *std::move(version);
  record_.set_model(*version_);
  auto model = version_->Loaded();
  if (!model.ok()) return model.status();
  model_ = *std::move(model);
  status = CheckTask();
  if (status.ok()) {
    status =
        prediction::ValidateRequest(request_.images.size(), request_.options,
                                    model_->directory.config, env_.limits);
  }
  if (status.ok()) status = CheckParams();
  if (status.ok()) status = CheckImages();
  if (status.ok()) status = CheckAlive("arrival", deadline_);
  if (status.ok()) status = Reserve();
  return status;
}

absl::Status PredictCall::CheckTask() const {
  const model::VisionTask task = model_->directory.config.task;
  if (task == task_) return absl::OkStatus();
  const std::string got(repository::TaskName(task_)),
      expected(repository::TaskName(task));
  server::ErrorDetail detail;
  detail.reason = "TASK_MISMATCH";
  detail.metadata = {
      {"model", version_->name()}, {"got", got}, {"expected", expected}};
  return server::MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat(version_->name(), ": got ", got, ", expected ", expected),
      std::move(detail));
}

absl::Status PredictCall::CheckImages() {
  items_.resize(request_.images.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    item.status = prediction::ValidateImage(
        request_.images[i], model_->directory.config, env_.limits, &item.facts);
    if (item.status.ok()) continue;
    env_.metrics.ImageFailed(item.facts.format,
                             server::GetErrorDetail(item.status).reason);
    item.status = AtImage(i, item.status);
    if (!partial_) return item.status;
  }
  return absl::OkStatus();
}

absl::Status PredictCall::Reserve() {
  int items = 0;
  int64_t bytes = 0;
  for (const Item& item : items_) {
    if (!item.status.ok()) continue;
    ++items;
    bytes += item.facts.input_bytes + AnswerBytes(item.facts);
  }
  if (items == 0) return absl::OkStatus();
  absl::StatusOr<batching::Reservation> reservation =
      model_->executor->Reserve(items, bytes);
  if (!reservation.ok()) return reservation.status();
  for (Item& item : items_) {
    if (!item.status.ok()) continue;
    item.input_room = reservation->Split(1, item.facts.input_bytes);
    item.answer_room = reservation->Split(0, AnswerBytes(item.facts));
  }
  return absl::OkStatus();
}

void PredictCall::Schedule(int i) {
  observability::Metrics& metrics = env_.metrics;
  metrics.DecodeQueued();
  const absl::Status status = env_.decode_pool.TryRun([this, i, &metrics] {
    metrics.DecodeStarted();
    Prepare(i);  // May delete this.
    metrics.DecodeDone();
  });
  if (status.ok()) return;
  metrics.DecodeStarted();
  metrics.DecodeDone();
  EndItem(i, status);
}

void PredictCall::Prepare(int i) {
  absl::Status status = CheckAlive("decode", queue_deadline_);
  if (!status.ok()) return EndItem(i, status);
  Item& item = items_[i];
  absl::StatusOr<image::PreparedInput> input =
      Guarded([this, i, &item]() -> absl::StatusOr<image::PreparedInput> {
        const image::MemoryBudget::Share memory(&env_.decode_memory,
                                                item.facts.decode_bytes);
        return image::MakeInput(request_.images[i], model_->directory.config,
                                request_.options.resize(), env_.limits.image);
      });
  if (!input.ok()) {
    env_.metrics.ImageFailed(item.facts.format,
                             server::GetErrorDetail(input.status()).reason);
    return EndItem(i, AtImage(i, input.status()));
  }
  item.frame = input->frame;
  item.decode = input->decode;
  item.preprocess = input->preprocess;
  env_.metrics.ImageDecoded(item.facts.format, item.facts.pixels);
  status = CheckAlive("decode", queue_deadline_);
  if (!status.ok()) return EndItem(i, status);
  Submit(i, std::move(input->image));
}

void PredictCall::Submit(int i, image::ImageBuffer input) {
  const model::ModelConfig& config = model_->directory.config;
  batching::BatchTask task;
  task.bucket_height = config.Padded(input.height);
  task.bucket_width = config.Padded(input.width);
  task.image = std::move(input);
  task.deadline = queue_deadline_;
  task.cancelled = dropped_;
  task.reservation = std::move(items_[i].input_room);
  FillTask(&task);
  task.done = [this, i](absl::StatusOr<model::Result> result,
                        const batching::BatchInfo& batch) {
    const absl::Status status = env_.finish_pool.TryRun(
        [this, i, result = std::move(result), batch]() mutable {
          Postprocess(i, std::move(result), batch);
        });
    // The batch thread encodes nothing itself.
    if (!status.ok()) EndItem(i, status);
  };
  model_->executor->Submit(std::move(task));
}

void PredictCall::Postprocess(int i, absl::StatusOr<model::Result> result,
                              const batching::BatchInfo& batch) {
  Item& item = items_[i];
  item.batch = batch;
  absl::Status status = result.status();
  if (status.ok()) status = CheckAlive("postprocess", deadline_);
  if (status.ok()) {
    const absl::Time start = base::SteadyNow();
    status = Guarded([this, i, &result, &item] {
      const absl::Status filled = FillResult(i, *result, item.frame);
      if (!filled.ok()) return filled;
      return CheckSize(result_bytes_ += ResultAt(i).ByteSizeLong());
    });
    item.postprocess = base::SteadyNow() - start;
    if (absl::IsResourceExhausted(status)) dropped_->store(true);
  }
  EndItem(i, status);
}

void PredictCall::EndItem(int i, absl::Status status) {
  Item& item = items_[i];
  item.input_room.Release();
  item.answer_room.Release();
  if (absl::IsCancelled(status) && client_gone_.load() &&
      prediction::HungUpAtDeadline(record_.start(), deadline_, env_.clock())) {
    status = prediction::Expired(prediction::StageOf(status, "queue"));
  }
  CountItem(status);
  observability::ModelMetrics& metrics = *version_->metrics();
  if (status.ok()) {
    if (!request_.images[i].has_tensor()) {
      metrics.StageDone(observability::Stage::kDecode, item.decode);
      metrics.StageDone(observability::Stage::kPreprocess, item.preprocess);
    }
    metrics.StageDone(observability::Stage::kQueue, item.batch.queue);
    metrics.StageDone(observability::Stage::kInference, item.batch.inference);
    metrics.StageDone(observability::Stage::kPostprocess, item.postprocess);
  } else if (!partial_) {
    dropped_->store(true);
  }
  item.status = std::move(status);
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) FinishAll();
}

void PredictCall::FinishEarly(const absl::Status& status) {
  Finish(record_.Finish(status));
}

void PredictCall::FinishAll() {
  absl::Status status = Outcome();
  if (status.ok()) {
    FillErrors();
    if (request_.options.include_timing()) FillTiming();
    status = CheckSize(response().ByteSizeLong());
  }
  Finish(record_.Finish(status));
}

absl::Status PredictCall::Outcome() const {
  if (client_gone_.load()) {
    return prediction::HungUpAtDeadline(record_.start(), deadline_,
                                        env_.clock())
               ? prediction::Expired("queue")
               : prediction::Cancelled("queue");
  }
  if (partial_) return absl::OkStatus();
  // Those dropped for another's sake are CANCELLED; the first other is the
  // cause.
  for (const Item& item : items_) {
    if (!item.status.ok() && !absl::IsCancelled(item.status)) {
      return item.status;
    }
  }
  return absl::OkStatus();
}

void PredictCall::FillErrors() {
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].status.ok()) continue;
    *MutableError(i) = server::ToRpcStatus(items_[i].status);
  }
}

void PredictCall::FillTiming() {
  Item slowest;
  for (const Item& item : items_) {
    slowest.decode = std::max(slowest.decode, item.decode);
    slowest.preprocess = std::max(slowest.preprocess, item.preprocess);
    slowest.postprocess = std::max(slowest.postprocess, item.postprocess);
    const absl::Duration queue =
        std::max(slowest.batch.queue, item.batch.queue);
    if (item.batch.inference >= slowest.batch.inference) {
      slowest.batch = item.batch;
    }
    slowest.batch.queue = queue;
  }
  v1::Timing& timing = *MutableTiming();
  base::ToProto(slowest.decode, timing.mutable_decode());
  base::ToProto(slowest.preprocess, timing.mutable_preprocess());
  base::ToProto(slowest.batch.queue, timing.mutable_queue());
  base::ToProto(slowest.batch.inference, timing.mutable_inference());
  base::ToProto(slowest.postprocess, timing.mutable_postprocess());
  base::ToProto(base::SteadyNow() - record_.start(), timing.mutable_total());
  timing.set_batch_size(slowest.batch.batch_size);
  timing.set_padded_batch_size(slowest.batch.padded_batch_size);
  timing.set_fold_factor(slowest.batch.fold_factor);
  timing.set_bucket(slowest.batch.bucket);
  timing.set_device(model_->executor->device());
}

void PredictCall::OnCancel() {
  client_gone_.store(true);
  dropped_->store(true);
}

absl::Status PredictCall::CheckAlive(absl::string_view stage,
                                     absl::Time deadline) const {
  if (dropped_->load()) return prediction::Cancelled(stage);
  if (env_.clock() >= deadline) return prediction::Expired(stage);
  return absl::OkStatus();
}

absl::Status PredictCall::CheckSize(int64_t bytes) const {
  if (bytes <= env_.max_response_bytes) return absl::OkStatus();
  server::ErrorDetail detail;
  detail.reason = "RESPONSE_TOO_LARGE";
  detail.metadata = {{"bytes", absl::StrCat(bytes)},
                     {"max_bytes", absl::StrCat(env_.max_response_bytes)}};
  return server::MakeError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the response has ", bytes,
                   " bytes or more, expected at most ", env_.max_response_bytes,
                   "; smaller are ", SmallerResponse()),
      std::move(detail));
}

void PredictCall::CountItem(const absl::Status& status) {
  observability::ModelMetrics& metrics = *version_->metrics();
  const observability::ItemOutcome outcome = OutcomeOf(status);
  metrics.ItemDone(outcome);
  if (outcome == observability::ItemOutcome::kRejected) {
    metrics.Rejected(server::GetErrorDetail(status).reason);
  } else if (outcome == observability::ItemOutcome::kExpired) {
    metrics.DeadlineMissed(prediction::StageOf(status, "queue"));
  }
}

}  // namespace sfmamba::rpc
