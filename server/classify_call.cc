#include "server/classify_call.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/convert.h"
#include "server/deadline.h"
#include "server/error.h"
#include "server/image_input.h"
#include "server/task.h"

namespace sfmamba {
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
  ErrorDetail detail = GetErrorDetail(status);
  detail.field = absl::StrCat("images[", i, "]", detail.field);
  const std::string message =
      absl::StrCat(detail.field, ": ", status.message());
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return MakeError(status.code(), message, std::move(detail));
}

ItemOutcome OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ItemOutcome::kOk;
    case absl::StatusCode::kResourceExhausted:
      return ItemOutcome::kRejected;
    case absl::StatusCode::kDeadlineExceeded:
      return ItemOutcome::kExpired;
    case absl::StatusCode::kCancelled:
      return ItemOutcome::kCancelled;
    default:
      return ItemOutcome::kError;
  }
}

}  // namespace

ClassifyCall::ClassifyCall(const CallEnvironment& environment,
                           grpc::CallbackServerContext* context,
                           const v1::ClassifyRequest* request,
                           v1::ClassifyResponse* response)
    : env_(environment),
      request_(*request),
      response_(*response),
      partial_(request->options().allow_partial_results()),
      record_(Method::kClassify, *request, context, &environment.metrics,
              &environment.log),
      deadline_(SteadyDeadline(context->deadline(), absl::Now(),
                               record_.start(), environment.default_deadline,
                               environment.max_deadline)),
      queue_deadline_(
          request->options().has_max_queue_wait()
              ? std::min(deadline_,
                         record_.start() +
                             FromProto(request->options().max_queue_wait()))
              : deadline_) {}

void ClassifyCall::Start(const absl::Status& serving) {
  record_.set_images(request_.images_size());
  const absl::Status status =
      serving.ok() ? Guarded([this] { return Admit(); }) : serving;
  if (!status.ok()) {
    for (int i = 0; i < request_.images_size() && version_ != nullptr; ++i) {
      CountItem(status);
    }
    FinishEarly(status);
    return;
  }
  response_.set_request_id(request_.request_id());
  response_.set_model(version_->name());
  const int count = items_.size();
  for (int i = 0; i < count; ++i) response_.add_results();
  if (request_.options().validate_only()) {
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

absl::Status ClassifyCall::Admit() {
  absl::Status status = ValidateRequestId(request_.request_id());
  if (!status.ok()) return status;
  record_.set_request_id(request_.request_id());
  auto version = env_.repository.Find(request_.model(), "model");
  if (!version.ok()) return version.status();
  version_ = *std::move(version);
  record_.set_model(*version_);
  auto model = version_->Loaded();
  if (!model.ok()) return model.status();
  model_ = *std::move(model);
  status =
      ValidateClassify(request_, model_->directory.labels.size(), env_.limits);
  if (status.ok()) status = CheckImages();
  if (status.ok()) status = CheckAlive("arrival", deadline_);
  if (status.ok()) status = Reserve();
  return status;
}

absl::Status ClassifyCall::CheckImages() {
  items_.resize(request_.images_size());
  for (size_t i = 0; i < items_.size(); ++i) {
    Item& item = items_[i];
    item.status = ValidateImage(request_.images(i), model_->directory.config,
                                env_.limits, &item.facts);
    if (item.status.ok()) continue;
    env_.metrics.ImageFailed(item.facts.format,
                             GetErrorDetail(item.status).reason);
    item.status = AtImage(i, item.status);
    if (!partial_) return item.status;
  }
  return absl::OkStatus();
}

absl::Status ClassifyCall::Reserve() {
  int items = 0;
  int64_t bytes = 0;
  for (const Item& item : items_) {
    if (!item.status.ok()) continue;
    ++items;
    bytes += item.facts.input_bytes;
  }
  if (items == 0) return absl::OkStatus();
  absl::StatusOr<Reservation> reservation =
      model_->executor->Reserve(items, bytes);
  if (!reservation.ok()) return reservation.status();
  for (Item& item : items_) {
    if (!item.status.ok()) continue;
    item.reservation = reservation->Split(1, item.facts.input_bytes);
  }
  return absl::OkStatus();
}

void ClassifyCall::Schedule(int i) {
  Metrics& metrics = env_.metrics;
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

void ClassifyCall::Prepare(int i) {
  absl::Status status = CheckAlive("decode", queue_deadline_);
  if (!status.ok()) return EndItem(i, status);
  Item& item = items_[i];
  absl::StatusOr<ImageBuffer> input =
      Guarded([this, i, &item]() -> absl::StatusOr<ImageBuffer> {
        const MemoryBudget::Share memory(&env_.decode_memory,
                                         3 * item.facts.pixels);
        return MakeInput(request_.images(i), model_->directory.config,
                         request_.options().resize(), env_.limits.image,
                         &item.times);
      });
  if (!input.ok()) {
    env_.metrics.ImageFailed(item.facts.format,
                             GetErrorDetail(input.status()).reason);
    return EndItem(i, AtImage(i, input.status()));
  }
  env_.metrics.ImageDecoded(item.facts.format, item.facts.pixels);
  status = CheckAlive("decode", queue_deadline_);
  if (!status.ok()) return EndItem(i, status);
  Submit(i, *std::move(input));
}

void ClassifyCall::Submit(int i, ImageBuffer input) {
  Task task;
  task.image = std::move(input);
  task.deadline = queue_deadline_;
  task.cancelled = dropped_;
  task.reservation = std::move(items_[i].reservation);
  task.done = [this, i](absl::StatusOr<Result> result, const BatchInfo& batch) {
    absl::AnyInvocable<void()> finish = [this, i, result = std::move(result),
                                         batch]() mutable {
      Postprocess(i, std::move(result), batch);
    };
    // If the pool is full, this thread does it.
    if (!env_.finish_pool.TryRun(std::move(finish)).ok()) finish();
  };
  model_->executor->Submit(std::move(task));
}

void ClassifyCall::Postprocess(int i, absl::StatusOr<Result> result,
                               const BatchInfo& batch) {
  Item& item = items_[i];
  item.batch = batch;
  absl::Status status = result.status();
  if (status.ok()) status = CheckAlive("postprocess", deadline_);
  if (status.ok()) {
    const absl::Time start = SteadyNow();
    ToProto(std::get<Classification>(*result), request_.params(),
            model_->directory.labels, response_.mutable_results(i));
    item.postprocess = SteadyNow() - start;
  }
  EndItem(i, status);
}

void ClassifyCall::EndItem(int i, absl::Status status) {
  Item& item = items_[i];
  item.reservation.Release();
  if (absl::IsCancelled(status) && client_gone_.load() &&
      HungUpAtDeadline(record_.start(), deadline_, SteadyNow())) {
    status = Expired(StageOf(status, "queue"));
  }
  CountItem(status);
  ModelMetrics& metrics = *version_->metrics();
  if (status.ok()) {
    if (!request_.images(i).has_tensor()) {
      metrics.StageDone(Stage::kDecode, item.times.decode);
      metrics.StageDone(Stage::kPreprocess, item.times.preprocess);
    }
    metrics.StageDone(Stage::kQueue, item.batch.queue);
    metrics.StageDone(Stage::kInference, item.batch.inference);
    metrics.StageDone(Stage::kPostprocess, item.postprocess);
  } else if (!partial_) {
    dropped_->store(true);
  }
  item.status = std::move(status);
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) FinishAll();
}

void ClassifyCall::FinishEarly(const absl::Status& status) {
  Finish(record_.Finish(status));
}

void ClassifyCall::FinishAll() {
  const absl::Status status = Outcome();
  if (status.ok()) {
    FillErrors();
    if (request_.options().include_timing()) FillTiming();
  }
  Finish(record_.Finish(status));
}

absl::Status ClassifyCall::Outcome() const {
  if (client_gone_.load()) {
    return HungUpAtDeadline(record_.start(), deadline_, SteadyNow())
               ? Expired("queue")
               : Cancelled("queue");
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

void ClassifyCall::FillErrors() {
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].status.ok()) continue;
    *response_.mutable_results(i)->mutable_error() =
        ToRpcStatus(items_[i].status);
  }
}

void ClassifyCall::FillTiming() {
  Item slowest;
  for (const Item& item : items_) {
    slowest.times.decode = std::max(slowest.times.decode, item.times.decode);
    slowest.times.preprocess =
        std::max(slowest.times.preprocess, item.times.preprocess);
    slowest.postprocess = std::max(slowest.postprocess, item.postprocess);
    const absl::Duration queue =
        std::max(slowest.batch.queue, item.batch.queue);
    if (item.batch.inference >= slowest.batch.inference) {
      slowest.batch = item.batch;
    }
    slowest.batch.queue = queue;
  }
  v1::Timing& timing = *response_.mutable_timing();
  ToProto(slowest.times.decode, timing.mutable_decode());
  ToProto(slowest.times.preprocess, timing.mutable_preprocess());
  ToProto(slowest.batch.queue, timing.mutable_queue());
  ToProto(slowest.batch.inference, timing.mutable_inference());
  ToProto(slowest.postprocess, timing.mutable_postprocess());
  ToProto(SteadyNow() - record_.start(), timing.mutable_total());
  timing.set_batch_size(slowest.batch.batch_size);
  timing.set_padded_batch_size(slowest.batch.padded_batch_size);
  timing.set_fold_factor(slowest.batch.fold_factor);
  timing.set_bucket(slowest.batch.bucket);
  timing.set_device(model_->executor->device());
}

void ClassifyCall::OnCancel() {
  client_gone_.store(true);
  dropped_->store(true);
}

absl::Status ClassifyCall::CheckAlive(absl::string_view stage,
                                      absl::Time deadline) const {
  if (dropped_->load()) return Cancelled(stage);
  if (SteadyNow() >= deadline) return Expired(stage);
  return absl::OkStatus();
}

void ClassifyCall::CountItem(const absl::Status& status) {
  ModelMetrics& metrics = *version_->metrics();
  const ItemOutcome outcome = OutcomeOf(status);
  metrics.ItemDone(outcome);
  if (outcome == ItemOutcome::kRejected) {
    metrics.Rejected(GetErrorDetail(status).reason);
  } else if (outcome == ItemOutcome::kExpired) {
    metrics.DeadlineMissed(StageOf(status, "queue"));
  }
}

}  // namespace sfmamba
