// This file contains the steps in which a Prediction encodes the model's
// results.

#include <cstdint>
#include <memory>
#include <utility>

#include "base/steady_clock.h"
#include "server/errors/guarded.h"
#include "server/prediction/prediction.h"

namespace sfmamba::prediction {
namespace {

// An idle batch thread encodes an answer itself if the expected encoding time
// is at most this. Waking a thread of the finish pool takes about as long.
constexpr absl::Duration kShortAnswer = absl::Microseconds(50);

}  // namespace

void Prediction::StartAnswer(OpenItem open, absl::Status status,
                             EncoderMaker make_encoder) {
  Item& item = items_[open.index()];
  absl::StatusOr<batching::Reservation> room = env_.finish_room.Take(1, 0);
  if (!room.ok()) return open.End(room.status());
  item.admission.finish_room = *std::move(room);
  if (status.ok()) {
    status = server::Guarded([&] {
      item.encoder = make_encoder(item);
      return absl::OkStatus();
    });
  }
  const bool is_short = !status.ok() || NextCost(item) <= kShortAnswer;
  if (!item.run.batch.thread_is_idle || !is_short) {
    return SchedulePostprocess(std::move(open), std::move(status));
  }
  // The batch thread runs Postprocess() itself. Guarded() catches exceptions,
  // so an exception makes only this image fail. SchedulePostprocess() needs no
  // Guarded(), because finish_pool catches the exceptions of its work.
  server::Guarded([this, &open, &status] {
    // May destroy this object.
    Postprocess(std::move(open), std::move(status));
    return absl::OkStatus();
  }).IgnoreError();
}

absl::Duration Prediction::NextCost(const Item& item) const {
  return item.encoder->done()
             ? absl::ZeroDuration()
             : env_.costs.Encode(handler_->task(), item.encoder->NextCost());
}

void Prediction::SchedulePostprocess(OpenItem open, absl::Status status) {
  const absl::Duration cost =
      status.ok() ? NextCost(items_[open.index()]) : absl::ZeroDuration();
  env_.finish_pool.Run(MakeWork(
      cost, deadline_, [this, open = std::move(open), status]() mutable {
        Postprocess(std::move(open), std::move(status));
      }));
}

void Prediction::Postprocess(OpenItem open, absl::Status status) {
  const int i = open.index();
  Item& item = items_[i];
  if (status.ok()) status = CheckAlive("postprocess", deadline_);
  if (status.ok()) {
    const absl::Time start = base::SteadyNow();
    if (item.postprocess == absl::ZeroDuration()) item.encode_started = start;
    status = server::Guarded([this, i] { return EncodePiece(i); });
    item.postprocess += base::SteadyNow() - start;
    if (absl::IsResourceExhausted(status)) Drop();
  }
  if (status.ok() && item.encoder != nullptr) {
    return SchedulePostprocess(std::move(open), absl::OkStatus());
  }
  item.encoder = nullptr;
  if (status.ok() && item.found.has_value()) {
    return ClassifyCrops(std::move(open));
  }
  open.End(std::move(status));
}

absl::Status Prediction::EncodePiece(int i) {
  Item& item = items_[i];
  std::unique_ptr<AnswerEncoder>& encoder = item.encoder;
  absl::Status status;
  if (!encoder->done()) {
    const absl::Duration cost = encoder->NextCost();
    const absl::Time start = base::SteadyNow();
    status = encoder->EncodeNext();
    env_.costs.Encoded(handler_->task(), cost, base::SteadyNow() - start);
  }
  // While an answer is encoded, the model's result and the encoded data are
  // both in memory.
  const int64_t held =
      handler_->ResultBytes(model_->directory, item.facts) + encoder->bytes();
  if (status.ok() && held > item.answer_memory->bytes) {
    status = item.answer_memory.Resize(held);
  }
  if (!status.ok()) return status;
  if (!encoder->done()) return CountAnswer(&item, encoder->bytes());
  Answer answer = encoder->Take();
  encoder = nullptr;
  if (classifier_ == nullptr) return WriteAnswer(i, std::move(answer));
  auto& found = std::get<v1::DetectResult>(answer.result);
  if (found.detections().empty()) return WriteAnswer(i, std::move(answer));
  item.found = std::move(found);
  return absl::OkStatus();
}

absl::Status Prediction::WriteAnswer(int i, Answer answer) {
  const int64_t bytes = writer_.SetAnswer(i, std::move(answer));
  const absl::Status status = CountAnswer(&items_[i], bytes);
  if (!status.ok()) return status;
  return items_[i].answer_memory.Resize(bytes);
}

absl::Status Prediction::CountAnswer(Item* item, int64_t bytes) {
  const int64_t more = bytes - std::exchange(item->answer_bytes, bytes);
  return CheckSize(answer_bytes_ += more);
}

}  // namespace sfmamba::prediction
