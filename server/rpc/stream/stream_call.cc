#include "server/rpc/stream/stream_call.h"

#include <algorithm>
#include <utility>

#include "server/errors/reasons.h"
#include "server/observability/request_record.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {

StreamCall::StreamCall(const prediction::TransportEnvironment& environment,
                       grpc::CallbackServerContext* context, SendWatch* sends,
                       Options options, Take take)
    : env_(environment),
      context_(*context),
      sends_(*sends),
      options_(std::move(options)),
      take_(std::move(take)),
      max_in_flight_(options_.max_in_flight),
      idle_since_(env_.clock()) {}

void StreamCall::Start() {
  mu_.Lock();
  self_ = shared_from_this();
  Pump();
}

void StreamCall::Tick(bool draining) {
  const absl::Status allowed = options_.rights.allowed();
  mu_.Lock();
  if (!allowed.ok() && !end_.has_value()) Abandon(Record(allowed));
  const absl::Time now = env_.clock();
  if (draining && notice_ == Notice::kNone) {
    notice_ = options_.draining_notice.Valid() ? Notice::kDue : Notice::kSent;
    idle_since_ = now;
  }
  const absl::Duration most = draining ? kMostIdleDraining : kMostIdle;
  if (in_flight_ == 0 && !writing_ && now - idle_since_ >= most) {
    End(draining ? server::Draining("the server") : absl::OkStatus());
  }
  Pump();
}

// ---- Requests ----

void StreamCall::OnReadDone(bool ok) {
  absl::StatusOr<std::unique_ptr<StreamItem>> taken = nullptr;
  // `received_` needs no mutex here, because no other read starts before
  // Pump().
  const int64_t bytes = ok ? static_cast<int64_t>(received_.Length()) : 0;
  if (ok) taken = take_(*this, &received_);
  mu_.Lock();
  reading_ = false;
  read_all_ |= !ok;
  Item* const item = Admit(&taken, bytes);
  Pump();
  if (item == nullptr) return;
  // This StreamCall exists as long as an item is in flight. The item is in
  // flight at least until it calls ItemDone(), so `this` stays valid until
  // then.
  item->item->Run(options_.serving(), [this, item] { ItemDone(item); });
}

StreamCall::Item* StreamCall::Admit(
    absl::StatusOr<std::unique_ptr<StreamItem>>* taken, int64_t bytes) {
  if (!taken->ok()) {
    End(taken->status());
    return nullptr;
  }
  // If a request arrives while the stream ends, it is not answered.
  if (**taken == nullptr || end_.has_value()) return nullptr;
  items_.emplace_back();
  items_.back().item = std::move(**taken);
  items_.back().bytes = bytes;
  message_bytes_ += bytes;
  ++in_flight_;
  return &items_.back();
}

void StreamCall::SetMaxInFlight(int max_in_flight) {
  absl::MutexLock lock(&mu_);
  max_in_flight_ = max_in_flight;
}

bool StreamCall::IsInFlight(absl::string_view id) {
  absl::MutexLock lock(&mu_);
  // Ignores a request whose response is being sent. The client may already have
  // received the response and may reuse the id.
  const Item* const sending = sending_;
  return std::any_of(items_.begin(), items_.end(),
                     [sending, id](const Item& item) {
                       return &item != sending && item.item->id() == id;
                     });
}

// ---- Responses ----

void StreamCall::ItemDone(Item* item) {
  mu_.Lock();
  item->done = true;
  done_.push_back(item);
  if (!item->item->stream_error().ok()) Abandon(item->item->stream_error());
  Pump();
}

StreamCall::Item* StreamCall::NextAnswer() {
  const auto in_order = [](const Item& item) { return item.item->in_order(); };
  const auto first = std::find_if(items_.begin(), items_.end(), in_order);
  const auto next = std::find_if(
      done_.begin(), done_.end(),
      [&](const Item* item) { return !in_order(*item) || item == &*first; });
  if (next == done_.end()) return nullptr;
  Item* const item = *next;
  done_.erase(next);
  return item;
}

StreamCall::Item StreamCall::Remove(Item* item) {
  const auto found =
      std::find_if(items_.begin(), items_.end(),
                   [item](const Item& other) { return &other == item; });
  Item removed = std::move(*found);
  items_.erase(found);
  return removed;
}

std::vector<StreamCall::Item> StreamCall::RemoveUnsent() {
  std::vector<Item> removed;
  for (Item* item : done_) removed.push_back(Remove(item));
  done_.clear();
  return removed;
}

void StreamCall::Destroy(std::vector<Item> items) {
  const int count = static_cast<int>(items.size());
  int64_t bytes = 0;
  for (const Item& item : items) bytes += item.bytes;
  items.clear();
  absl::MutexLock lock(&mu_);
  in_flight_ -= count;
  message_bytes_ -= bytes;
  if (in_flight_ == 0) idle_since_ = env_.clock();
}

void StreamCall::OnWriteDone(bool ok) {
  std::vector<Item> sent;
  mu_.Lock();
  sends_.Done(&context_);
  if (sending_ != nullptr) {
    sent.push_back(Remove(std::exchange(sending_, nullptr)));
  }
  mu_.Unlock();
  Destroy(std::move(sent));
  mu_.Lock();
  writing_ = false;
  if (!ok) Abandon(server::Cancelled("write"));
  Pump();
}

void StreamCall::OnCancel() {
  mu_.Lock();
  Abandon(server::Cancelled("stream"));
  Pump();
}

void StreamCall::Abandon(const absl::Status& status) {
  abandoned_ = true;
  if (!end_.has_value()) end_ = status;
  for (Item& item : items_) {
    if (!item.done) item.item->Cancel();
  }
}

void StreamCall::End(const absl::Status& status) {
  if (end_.has_value()) return;
  end_ = status.ok() ? status : Record(status);
}

absl::Status StreamCall::Record(const absl::Status& error) const {
  observability::RequestRecord record(options_.method, 0, context_.peer(),
                                      OnlyHeader(context_, "traceparent"),
                                      &env_.metrics, &env_.log);
  record.set_client(options_.rights.caller.name);
  record.set_no_model();
  return record.Finish(error);
}

void StreamCall::OnDone() {
  sends_.Done(&context_);
  mu_.Lock();
  const std::shared_ptr<StreamCall> self = std::move(self_);
  mu_.Unlock();
}

// ---- The next step ----

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

bool StreamCall::HasRoom() const {
  return in_flight_ < max_in_flight_ &&
         (in_flight_ < kAlwaysInFlight || message_bytes_ < kMostBytes);
}

absl::AnyInvocable<void()> StreamCall::Next() {
  if (finished_) return nullptr;
  if (abandoned_) {
    if (!done_.empty()) {
      return [this, unsent = RemoveUnsent()]() mutable {
        Destroy(std::move(unsent));
      };
    }
  } else if (!writing_) {
    if (notice_ == Notice::kDue) {
      notice_ = Notice::kSent;
      return Write(options_.draining_notice);
    }
    sending_ = NextAnswer();
    if (sending_ != nullptr) return Write(sending_->item->answer());
  }
  if (!read_all_ && !end_.has_value()) {
    if (reading_ || !HasRoom()) return nullptr;
    reading_ = true;
    return [this] { StartRead(&received_); };
  }
  if (writing_ || in_flight_ > 0) return nullptr;
  finished_ = true;
  sends_.Sending(&context_);
  const absl::Status status = end_.value_or(absl::OkStatus());
  return [this, status] { Finish(EndCall(status, &context_)); };
}

absl::AnyInvocable<void()> StreamCall::Write(const grpc::ByteBuffer& message) {
  writing_ = true;
  sends_.Sending(&context_);
  return [this, &message] { StartWrite(&message); };
}

// ---- Open streams ----

StreamCall* StreamSet::Start(const std::shared_ptr<StreamCall>& stream) {
  {
    absl::MutexLock lock(&mu_);
    streams_.push_back(stream);
  }
  stream->Start();
  return stream.get();
}

void StreamSet::Tick(bool draining) {
  // The mutex is not held during the calls of StreamCall::Tick(), so that
  // Start() does not wait for these calls.
  std::vector<std::shared_ptr<StreamCall>> streams;
  {
    absl::MutexLock lock(&mu_);
    std::vector<std::weak_ptr<StreamCall>> living;
    for (std::weak_ptr<StreamCall>& stream : streams_) {
      auto shared = stream.lock();
      if (shared == nullptr) continue;
      streams.push_back(std::move(shared));
      living.push_back(std::move(stream));
    }
    streams_ = std::move(living);
  }
  for (const auto& stream : streams) stream->Tick(draining);
}

}  // namespace sfmamba::rpc
