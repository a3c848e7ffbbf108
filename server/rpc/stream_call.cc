#include "server/rpc/stream_call.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/base/reasons.h"
#include "server/observability/request_record.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {
namespace {

using Proto = v1::StreamPredictRequest;

constexpr int kMaxCorrelationId = 128;  // Characters.

}  // namespace

StreamCall::StreamCall(const prediction::PredictionEnvironment& environment,
                       grpc::CallbackServerContext* context, SendWatch* sends,
                       std::function<absl::Status()> serving)
    : env_(environment),
      context_(*context),
      sends_(*sends),
      serving_(std::move(serving)),
      idle_since_(env_.clock()) {
  v1::StreamPredictResponse notice;
  notice.mutable_notice()->set_kind(v1::Notice::DRAINING);
  Serialize(notice, &notice_message_);
}

void StreamCall::Start() {
  mu_.Lock();
  self_ = shared_from_this();
  Pump();
}

void StreamCall::Tick(bool draining) {
  mu_.Lock();
  const absl::Time now = env_.clock();
  if (draining && notice_ == Notice::kNone) {
    notice_ = Notice::kDue;
    idle_since_ = now;
  }
  const absl::Duration most = draining ? kMostIdleDraining : kMostIdle;
  if (in_flight_ == 0 && !writing_ && now - idle_since_ >= most) {
    End(draining ? server::Draining("the server") : absl::OkStatus());
  }
  Pump();
}

// ---- What comes in ----

void StreamCall::OnReadDone(bool ok) {
  StreamMessage message;
  const absl::Status opened =
      ok ? OpenStreamMessage(&received_, &message) : absl::OkStatus();
  mu_.Lock();
  reading_ = false;
  StreamItem* item = nullptr;
  if (!ok) {
    read_all_ = true;
  } else if (!opened.ok()) {
    End(opened);
  } else {
    item = Take(std::move(message));
  }
  Pump();
  // It is in flight until it has run, and so this call lives.
  if (item != nullptr) item->Run(serving_());
}

StreamItem* StreamCall::Take(StreamMessage message) {
  const bool is_first = !std::exchange(any_message_, true);
  if (message.kind == Proto::kConfig) {
    if (is_first) {
      Configure(message.config);
    } else {
      End(server::InvalidField("config",
                               "got it after other messages, expected it in "
                               "the first one or not at all"));
    }
    return nullptr;
  }
  const absl::Status status = CheckItem(message);
  items_.emplace_back();
  ++in_flight_;
  Item* item = &items_.back();
  if (!status.ok()) {
    item->item =
        std::make_unique<RefusedItem>(message.correlation_id, Record(status));
    MarkDone(item);
    return nullptr;
  }
  item->item = MakeItem(std::move(message), item);
  return item->item.get();
}

void StreamCall::Configure(const v1::StreamConfig& config) {
  const int got = config.max_in_flight();
  if (got < 1 || got > kMostInFlight) {
    End(server::OutOfRange("config.max_in_flight", got, 1, kMostInFlight));
    return;
  }
  max_in_flight_ = got;
  preserve_order_ = config.preserve_order();
}

absl::Status StreamCall::CheckItem(const StreamMessage& message) const {
  const std::string& id = message.correlation_id;
  if (id.empty() || base::Utf8Length(id) > kMaxCorrelationId) {
    return server::InvalidField(
        "correlation_id",
        absl::StrCat("got ", base::Utf8Length(id),
                     " characters, expected 1 to ", kMaxCorrelationId));
  }
  for (const Item& item : items_) {
    if (item.item->correlation_id() == id) {
      return server::InvalidField(
          "correlation_id", "got that of a request which is still in flight");
    }
  }
  if (message.kind == Proto::REQUEST_NOT_SET) {
    return server::InvalidField(
        "request", "got none, expected classify, detect or segment");
  }
  return absl::OkStatus();
}

std::unique_ptr<StreamItem> StreamCall::MakeItem(StreamMessage message,
                                                 Item* item) {
  switch (message.kind) {
    case Proto::kClassify:
      return MakePredictItem<v1::ClassifyRequest, v1::ClassifyResponse,
                             prediction::ClassificationAnswer>(
          std::move(message), item,
          &v1::StreamPredictResponse::mutable_classify);
    case Proto::kDetect:
      return MakePredictItem<v1::DetectRequest, v1::DetectResponse,
                             prediction::DetectionAnswer>(
          std::move(message), item, &v1::StreamPredictResponse::mutable_detect);
    default:
      return MakePredictItem<v1::SegmentRequest, v1::SegmentResponse,
                             prediction::SegmentationAnswer>(
          std::move(message), item,
          &v1::StreamPredictResponse::mutable_segment);
  }
}

template <typename Request, typename Response, typename Answer>
std::unique_ptr<StreamItem> StreamCall::MakePredictItem(
    StreamMessage message, Item* item,
    Response* (v1::StreamPredictResponse::*alternative)()) {
  return std::make_unique<PredictItem<Request, Response, Answer>>(
      std::move(message.correlation_id), &message.request, env_, context_,
      alternative, [this, item] { ItemDone(item); });
}

// ---- What goes out ----

void StreamCall::ItemDone(Item* item) {
  mu_.Lock();
  MarkDone(item);
  Pump();
}

void StreamCall::MarkDone(Item* item) {
  item->done = true;
  if (!preserve_order_) done_.push_back(item);
}

StreamCall::Item* StreamCall::NextAnswer() {
  if (preserve_order_) {
    return !items_.empty() && items_.front().done ? &items_.front() : nullptr;
  }
  if (done_.empty()) return nullptr;
  Item* item = done_.front();
  done_.pop_front();
  return item;
}

std::unique_ptr<StreamItem> StreamCall::Remove(Item* item) {
  const auto found =
      std::find_if(items_.begin(), items_.end(),
                   [item](const Item& other) { return &other == item; });
  std::unique_ptr<StreamItem> removed = std::move(found->item);
  items_.erase(found);
  return removed;
}

void StreamCall::Destroy(std::vector<std::unique_ptr<StreamItem>> items) {
  const int count = static_cast<int>(items.size());
  items.clear();
  absl::MutexLock lock(&mu_);
  in_flight_ -= count;
  if (in_flight_ == 0) idle_since_ = env_.clock();
}

void StreamCall::OnWriteDone(bool ok) {
  std::vector<std::unique_ptr<StreamItem>> sent;
  mu_.Lock();
  sends_.Done(&context_);
  if (sending_ != nullptr) {
    sent.push_back(Remove(std::exchange(sending_, nullptr)));
  }
  mu_.Unlock();
  Destroy(std::move(sent));
  mu_.Lock();
  writing_ = false;
  if (!ok) Abandon();
  Pump();
}

void StreamCall::OnCancel() {
  mu_.Lock();
  Abandon();
  Pump();
}

void StreamCall::Abandon() {
  cancelled_ = true;
  for (Item& item : items_) {
    if (!item.done) item.item->Cancel();
  }
}

void StreamCall::End(const absl::Status& status) {
  if (end_.has_value()) return;
  end_ = status.ok() ? status : Record(status);
}

absl::Status StreamCall::Record(const absl::Status& error) {
  observability::RequestRecord record(observability::Method::kStreamPredict, 0,
                                      context_.peer(), TraceparentOf(context_),
                                      &env_.metrics, &env_.log);
  record.set_no_model();
  return record.Finish(error);
}

void StreamCall::OnDone() {
  sends_.Done(&context_);
  mu_.Lock();
  const std::shared_ptr<StreamCall> self = std::move(self_);
  mu_.Unlock();
}

// ---- What to do next ----

void StreamCall::Pump() {
  if (pumping_) {
    mu_.Unlock();
    return;
  }
  pumping_ = true;
  const std::shared_ptr<StreamCall> keep = self_;
  while (absl::AnyInvocable<void()> next = Next()) {
    mu_.Unlock();
    next();
    mu_.Lock();
  }
  pumping_ = false;
  mu_.Unlock();
}

absl::AnyInvocable<void()> StreamCall::Next() {
  if (finished_) return nullptr;
  if (cancelled_) {
    std::vector<Item*> unread;
    for (Item& item : items_) {
      if (item.done && &item != sending_) unread.push_back(&item);
    }
    done_.clear();
    if (!unread.empty()) {
      std::vector<std::unique_ptr<StreamItem>> dropped;
      for (Item* item : unread) dropped.push_back(Remove(item));
      return [this, dropped = std::move(dropped)]() mutable {
        Destroy(std::move(dropped));
      };
    }
  } else if (!writing_) {
    if (notice_ == Notice::kDue) {
      notice_ = Notice::kSent;
      return Write(notice_message_);
    }
    sending_ = NextAnswer();
    if (sending_ != nullptr) return Write(sending_->item->answer());
  }
  const bool takes_more = !read_all_ && !end_.has_value() && !cancelled_;
  if (takes_more) {
    if (reading_ || in_flight_ >= max_in_flight_) return nullptr;
    reading_ = true;
    return [this] { StartRead(&received_); };
  }
  if (writing_ || in_flight_ > 0) return nullptr;
  finished_ = true;
  sends_.Sending(&context_);
  const absl::Status status = cancelled_ ? absl::CancelledError("cancelled")
                                         : end_.value_or(absl::OkStatus());
  return [this, status] { Finish(EndCall(status, &context_)); };
}

absl::AnyInvocable<void()> StreamCall::Write(const grpc::ByteBuffer& message) {
  writing_ = true;
  sends_.Sending(&context_);
  return [this, &message] { StartWrite(&message); };
}

}  // namespace sfmamba::rpc
