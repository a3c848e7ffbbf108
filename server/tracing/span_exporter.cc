#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "server/threads/thread_name.h"

namespace sfmamba::tracing {
namespace {

constexpr int kMaxAttempts = 4;
constexpr absl::Duration kFirstDelay = absl::Milliseconds(500);

size_t SizeOf(const Span& span) { return 1 + span.links.size(); }

}  // namespace

absl::Duration RetryDelay(int attempts) {
  if (attempts >= kMaxAttempts) return absl::ZeroDuration();
  return kFirstDelay * (1 << (attempts - 1));
}

SpanExporter::SpanExporter(Options options, std::unique_ptr<SpanSink> sink)
    : options_(std::move(options)),
      sink_(std::move(sink)),
      thread_([this] { Loop(); }) {}

SpanExporter::~SpanExporter() {
  StartStopping(absl::ZeroDuration());
  thread_.join();
}

void SpanExporter::Add(std::vector<Span> spans) {
  absl::MutexLock lock(&mu_);
  for (Span& span : spans) {
    if (stopping_ || size_ + SizeOf(span) > options_.max_spans) {
      ++counts_.dropped;
      continue;
    }
    size_ += SizeOf(span);
    spans_.push_back(std::move(span));
  }
  if (spans_.size() >= options_.batch) changed_.SignalAll();
}

void SpanExporter::StartStopping(absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
  give_up_ = std::min(give_up_, base::SteadyNow() + limit);
  changed_.SignalAll();
}

void SpanExporter::AwaitStopped() {
  absl::MutexLock lock(&mu_);
  changed_.Await(&mu_, give_up_ - base::SteadyNow(),
                 [this]()
                     ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ended_; });
}

SpanExporter::Counts SpanExporter::TakeCounts() {
  absl::MutexLock lock(&mu_);
  return std::exchange(counts_, Counts());
}

void SpanExporter::Loop() {
  server::NameThisThread(absl::StrCat("spans-", options_.name));
  bool failing = false;
  while (true) {
    const std::vector<Span> spans = NextBatch();
    if (spans.empty()) break;
    const absl::Status status = Write(spans);
    {
      absl::MutexLock lock(&mu_);
      (status.ok() ? counts_.exported : counts_.dropped) += spans.size();
    }
    // The server's end is no failure of the sink.
    if (absl::IsCancelled(status)) continue;
    if (failing == status.ok()) options_.changed(status);
    failing = !status.ok();
  }
  absl::MutexLock lock(&mu_);
  ended_ = true;
  changed_.SignalAll();
}

std::vector<Span> SpanExporter::NextBatch() {
  const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || !spans_.empty();
  };
  const auto enough = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || spans_.size() >= options_.batch;
  };
  absl::MutexLock lock(&mu_, absl::Condition(&any));
  changed_.Await(&mu_, options_.delay, enough);
  const size_t count = std::min(spans_.size(), options_.batch);
  const auto end = spans_.begin() + count;
  std::vector<Span> batch(std::make_move_iterator(spans_.begin()),
                          std::make_move_iterator(end));
  spans_.erase(spans_.begin(), end);
  for (const Span& span : batch) size_ -= SizeOf(span);
  return batch;
}

absl::Status SpanExporter::Write(const std::vector<Span>& spans) {
  if (GivesUp()) return absl::CancelledError("the server ends");
  const std::string request = OtlpJson(options_.resource, spans);
  for (int attempts = 1;; ++attempts) {
    const absl::Status status =
        sink_->Write(request, [this] { return GivesUp(); });
    // Spans that the sink will never take are not sent again.
    if (!absl::IsUnavailable(status)) return status;
    const absl::Duration delay = RetryDelay(attempts);
    if (delay == absl::ZeroDuration() || !Pause(delay)) return status;
  }
}

bool SpanExporter::Pause(absl::Duration delay) {
  absl::MutexLock lock(&mu_);
  return !changed_.Await(
      &mu_, delay,
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_; });
}

bool SpanExporter::GivesUp() const {
  absl::MutexLock lock(&mu_);
  return base::SteadyNow() >= give_up_;
}

}  // namespace sfmamba::tracing
