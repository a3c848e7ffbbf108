// This file contains the checks and reservations that a Prediction makes before
// its images are processed.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "model/config.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/prediction/prediction.h"

namespace sfmamba::prediction {
namespace {

// The minimum memory in bytes that is reserved for an answer. Without this
// reservation, a small answer that is already computed could be refused for
// lack of memory.
constexpr int64_t kLeastAnswer = 4 << 10;

}  // namespace

absl::Status Prediction::CheckRequest() {
  absl::Status status = ValidateRequestId(request_.request_id);
  if (!status.ok()) return status;
  record_.set_request_id(request_.request_id);
  version_ = request_.version;
  if (version_ == nullptr) {
    auto version =
        env_.repository.Find(request_.model, "model", handler_->task());
    if (!version.ok()) return NotFound(version.status());
    version_ = *std::move(version);
  }
  record_.set_model(version_->name(), version_->metrics());
  auto model = version_->Loaded();
  if (!model.ok()) return model.status();
  model_ = *std::move(model);
  status = CheckTask();
  if (status.ok()) status = HoldMessage();
  if (status.ok()) {
    status = ValidateRequest(request_, model_->directory.config, env_.limits);
  }
  if (status.ok()) status = handler_->CheckParams(model_->directory);
  if (status.ok()) status = CheckCrops();
  return status;
}

absl::Status Prediction::NotFound(const absl::Status& status) const {
  return request_.call.caller.may_read ? status : server::WithoutHint(status);
}

absl::Status Prediction::Admit() {
  absl::Status status = CheckImages();
  if (status.ok()) status = CheckAlive("arrival", queue_deadline_);
  if (status.ok()) status = Reserve();
  return status;
}

absl::Status Prediction::CheckTask() const {
  const model::VisionTask task = model_->directory.config.task;
  if (task == handler_->task()) return absl::OkStatus();
  return server::TaskMismatch("model", version_->name(),
                              repository::TaskName(task),
                              repository::TaskName(handler_->task()));
}

absl::Status Prediction::HoldMessage() {
  const int64_t bytes = request_.message_bytes;
  if (bytes > env_.memory.most_of_message()) {
    return server::InputsTooLarge(bytes, env_.memory.most_of_message());
  }
  absl::StatusOr<server::MemoryHold> memory =
      env_.memory.Take(server::MemoryUse::kMessage, bytes);
  if (memory.ok()) message_memory_ = *std::move(memory);
  return memory.status();
}

absl::Status Prediction::CheckImages() {
  items_.resize(request_.images);
  // The minimum total size in bytes of the answers to the images checked so
  // far.
  int64_t answer_bytes = 0;
  for (int i = 0; i < request_.images; ++i) {
    Item& item = items_[i];
    item.status = CheckImage(i);
    if (item.status.ok()) {
      const int64_t own =
          handler_->LeastAnswerBytes(model_->directory, item.facts);
      item.status = CheckSize(answer_bytes + own);
      if (item.status.ok()) answer_bytes += own;
    } else {
      env_.metrics.ImageFailed(item.facts.format,
                               server::GetErrorDetail(item.status).reason);
      item.status = AtImage(i, item.status);
    }
    const bool fails_alone = request_.options.allow_partial_results;
    if (!item.status.ok() && !fails_alone) return item.status;
  }
  return absl::OkStatus();
}

absl::Status Prediction::CheckImage(int i) {
  absl::StatusOr<image::ImageSource> source = request_.image(i);
  if (!source.ok()) return source.status();
  Item& item = items_[i];
  item.source = *std::move(source);
  item.source.full_size = env_.limits.exact_decode;
  const repository::ModelDirectory& model = model_->directory;
  absl::Status status =
      ValidateImage(item.source, model.config, env_.limits, &item.facts);
  if (status.ok()) {
    status = handler_->Divide(model, env_.limits.max_images, &item.facts);
  }
  if (status.ok() && !item.facts.parts.empty() && !item.facts.parts_of_input) {
    status = ValidateParts(item.source, model.config, env_.limits, &item.facts);
  }
  if (!status.ok() || classifier_ == nullptr) return status;
  return ValidateKeptPicture(item.source, model.config, env_.limits,
                             &item.facts);
}

absl::StatusOr<batching::Reservation> Prediction::ReserveInputs(int64_t bytes) {
  batching::AdmissionRequest request;
  // The largest area (height * width) of the batch keys added so far, in
  // pixels. request.key is the batch key with this area.
  int64_t largest = 0;
  const auto add = [&request, &largest](const batching::BatchKey& key) {
    ++request.others[key];
    const int64_t pixels = int64_t{1} * key.height * key.width;
    if (pixels > largest) {
      largest = pixels;
      request.key = key;
    }
  };
  for (const Item& item : items_) {
    if (!item.status.ok()) continue;
    if (item.facts.parts.empty()) add(item.facts.key);
    for (const PartFacts& part : item.facts.parts) add(part.key);
  }
  request.images = request.others.extract(request.key).mapped();
  request.client = client_;
  request.priority = request_.options.priority;
  absl::Duration decode, answer;
  for (const Item& item : items_) {
    if (!item.status.ok()) continue;
    decode += env_.costs.Decode(item.facts);
    const absl::Duration own = env_.costs.Encode(
        handler_->task(),
        handler_->LongestAnswer(model_->directory, item.facts));
    answer += own;
    longest_answer_ = std::max(longest_answer_, own);
  }
  request.decode =
      env_.decode_pool.Wait(decode, request.priority, queue_deadline_);
  request.answer =
      std::max(longest_answer_,
               env_.finish_pool.Wait(answer, request.priority, deadline_));
  // Admission checks the deadline in two cases:
  // - The caller sent a deadline.
  // - The caller sent no deadline, and encoding the answer is expected to take
  //   longer than the time until deadline_. In this case, deadline_ is the
  //   server's default deadline. The answer would be late even if the model
  //   were idle, so admission should refuse the request.
  // In all other cases, request.deadline stays InfiniteFuture().
  if (request_.call.deadline != absl::InfiniteFuture() ||
      request.answer > deadline_ - env_.clock()) {
    request.deadline = deadline_;
  }
  if (request_.options.max_queue_wait.has_value()) {
    request.start_by = queue_deadline_;
  }
  return model_->executor->Admit(request, bytes);
}

absl::Status Prediction::Reserve() {
  int inputs = 0;
  for (const Item& item : items_) {
    if (item.status.ok()) inputs += item.facts.inputs();
  }
  if (inputs == 0) return absl::OkStatus();
  if (env_.quotas == nullptr) return ReserveRoom(inputs);
  security::Caller caller = request_.call.caller;
  caller.name = client_;
  absl::StatusOr<security::ClientQuotas::Hold> quota =
      env_.quotas->Take(caller, inputs);
  if (!quota.ok()) return quota.status();
  const absl::Status status = ReserveRoom(inputs);
  if (!status.ok()) {
    env_.quotas->Refund(*std::move(quota));
    return status;
  }
  for (Item& item : items_) {
    if (item.status.ok()) {
      item.admission.quota = quota->Split(item.facts.inputs());
    }
  }
  return status;
}

absl::Status Prediction::ReserveRoom(int inputs) {
  const auto result_bytes = [this](const Item& item) {
    return handler_->ResultBytes(model_->directory, item.facts);
  };
  const auto answer_bytes = [&result_bytes](const Item& item) {
    return std::max(result_bytes(item), kLeastAnswer);
  };
  int64_t bytes = 0;
  int64_t input_bytes = 0, answers = 0;  // Memory to reserve, in bytes.
  for (const Item& item : items_) {
    if (!item.status.ok()) continue;
    bytes += item.facts.input_bytes + result_bytes(item);
    input_bytes += item.facts.input_bytes + item.facts.picture_bytes;
    answers += answer_bytes(item);
  }
  const batching::Executor& executor = *model_->executor;
  const int64_t most =
      std::min(executor.queue_limits().items, env_.decode_room.limits().items);
  if (inputs > most) return server::TooManyImages(inputs, most);
  const int64_t most_bytes = executor.most_bytes(client_);
  if (bytes > most_bytes) return server::InputsTooLarge(bytes, most_bytes);
  const int64_t held = message_memory_->bytes + input_bytes + answers;
  if (held > env_.memory.most_of_request()) {
    return server::InputsTooLarge(held, env_.memory.most_of_request());
  }
  absl::StatusOr<batching::Reservation> decode = env_.decode_room.Take(
      std::count_if(items_.begin(), items_.end(), IsAnswered), 0, client_);
  if (!decode.ok()) return decode.status();
  absl::StatusOr<batching::Reservation> batch = ReserveInputs(bytes);
  if (!batch.ok()) return batch.status();
  absl::StatusOr<server::MemoryHold> input_memory =
      env_.memory.Take(server::MemoryUse::kInput, input_bytes);
  if (!input_memory.ok()) return input_memory.status();
  absl::StatusOr<server::MemoryHold> answer_memory =
      env_.memory.Take(server::MemoryUse::kAnswer, answers);
  if (!answer_memory.ok()) return answer_memory.status();
  for (Item& item : items_) {
    if (!item.status.ok()) continue;
    Admission& admission = item.admission;
    admission.decode_room = decode->Split(1, 0);
    admission.input_room =
        batch->Split(item.facts.inputs(), item.facts.input_bytes);
    admission.input_memory = input_memory->Split(item.facts.input_bytes);
    admission.picture_memory = input_memory->Split(item.facts.picture_bytes);
    admission.answer_room = batch->Split(0, result_bytes(item));
    item.answer_memory = answer_memory->Split(answer_bytes(item));
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::prediction
