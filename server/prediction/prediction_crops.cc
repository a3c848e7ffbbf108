// This file contains the steps in which a Prediction classifies crops of
// detected objects.

#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "server/errors/guarded.h"
#include "server/errors/reasons.h"
#include "server/observability/trace_context.h"
#include "server/prediction/picture_crops.h"
#include "server/prediction/prediction.h"

namespace sfmamba::prediction {

const v1::Crops* Prediction::crops() const {
  const auto* detect = std::get_if<v1::DetectParams>(&request_.params);
  return detect != nullptr && detect->has_crops() ? &detect->crops() : nullptr;
}

absl::Status Prediction::CheckCrops() {
  if (crops() == nullptr) return absl::OkStatus();
  constexpr auto kTask = model::VisionTask::kClassification;
  auto version =
      env_.repository.Find(crops()->model(), "params.crops.model", kTask);
  if (!version.ok()) return NotFound(version.status());
  classifier_ = *std::move(version);
  const auto model = classifier_->Loaded();
  if (!model.ok()) return model.status();
  const repository::ModelDirectory& directory = (*model)->directory;
  if (directory.config.task != kTask) {
    return server::TaskMismatch("params.crops.model", classifier_->name(),
                                repository::TaskName(directory.config.task),
                                repository::TaskName(kTask));
  }
  return ValidateCrops(*crops(), directory.labels.size());
}

void Prediction::ClassifyCrops(OpenItem open) {
  Item& item = items_[open.index()];
  item.admission.finish_room.Release();
  PredictionRequest request;
  request.method = observability::Method::kClassify;
  request.call = request_.call;
  request.call.deadline = deadline_;
  // The request that classifies the crops gets the trace id of this request. If
  // this request is traced, its span becomes the parent span of the new
  // request. Otherwise, the parent span is a new random id, because a
  // traceparent header must contain a parent.
  const observability::SpanId span =
      trace_ != nullptr ? trace_->rpc().span : observability::NewSpanId();
  request.call.traceparent =
      absl::StrCat("00-", observability::Hex(record_.trace().trace), "-",
                   observability::Hex(span), trace_ != nullptr ? "-01" : "-00");
  request.version = classifier_;
  request.request_id = record_.request_id();
  request.options.priority = request_.options.priority;
  request.options.max_queue_wait = request_.options.max_queue_wait;
  request.options.allow_partial_results =
      request_.options.allow_partial_results;
  auto own = std::make_unique<PictureCrops>(
      env_, std::move(item.picture), std::move(item.admission.picture_memory),
      *std::move(item.found));
  PictureCrops& picture_crops = *own;
  item.crops = std::move(own);
  picture_crops.Start(std::move(request), *crops(), *this,
                      [this, open = std::move(open)](
                          absl::StatusOr<v1::DetectResult> answer) mutable {
                        EndCrops(std::move(open), std::move(answer));
                      });
}

void Prediction::EndCrops(OpenItem open,
                          absl::StatusOr<v1::DetectResult> answer) {
  absl::Status status = answer.status();
  if (status.ok()) status = CheckAlive("postprocess", deadline_);
  if (status.ok()) {
    status = server::Guarded([this, i = open.index(), &answer] {
      return WriteAnswer(i, {*std::move(answer), {}});
    });
    if (absl::IsResourceExhausted(status)) Drop();
  }
  open.End(std::move(status));  // May destroy this object.
}

}  // namespace sfmamba::prediction
