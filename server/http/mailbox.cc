#include "server/http/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace sfmamba::http {
namespace {

class LiveExchange : public Exchange {
 public:
  LiveExchange(std::shared_ptr<Call> call, std::shared_ptr<Mailbox> mailbox,
               HttpRequest request)
      : call_(std::move(call)),
        mailbox_(std::move(mailbox)),
        request_(std::move(request)) {}
  ~LiveExchange() override {
    if (call_ != nullptr) Post(std::nullopt, nullptr);
  }

  HttpRequest& request() override { return request_; }
  void OnCancel(absl::AnyInvocable<void()> cancelled) override {
    call_->OnCancel(std::move(cancelled));
  }
  void Answer(HttpResponse response, absl::AnyInvocable<void()> sent) override {
    Post(std::move(response), std::move(sent));
  }

 private:
  void Post(std::optional<HttpResponse> response,
            absl::AnyInvocable<void()> sent) {
    request_ = HttpRequest();
    call_->ReleaseBody();
    mailbox_->Post(
        {std::exchange(call_, nullptr), std::move(response), std::move(sent)});
  }

  std::shared_ptr<Call> call_;  // Null once it is answered.
  const std::shared_ptr<Mailbox> mailbox_;
  HttpRequest request_;
};

void GiveUp(Answered answered) {
  answered.response.reset();
  if (answered.sent) answered.sent();
}

}  // namespace

void Call::OnCancel(absl::AnyInvocable<void()> cancelled) {
  {
    absl::MutexLock lock(&mu_);
    if (!is_cancelled_) {
      cancelled_ = std::move(cancelled);
      return;
    }
  }
  cancelled();
}

void Call::Cancel() {
  absl::AnyInvocable<void()> cancelled;
  {
    absl::MutexLock lock(&mu_);
    is_cancelled_ = true;
    cancelled = std::exchange(cancelled_, nullptr);
  }
  if (cancelled) cancelled();
}

Mailbox::Mailbox() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Mailbox::~Mailbox() { close(fd_); }

void Mailbox::Wake() { eventfd_write(fd_, 1); }

void Mailbox::Post(Answered answered) {
  {
    absl::MutexLock lock(&mu_);
    if (!closed_) {
      if (answers_.empty()) Wake();
      answers_.push_back(std::move(answered));
      return;
    }
  }
  GiveUp(std::move(answered));
}

std::vector<Answered> Mailbox::Take() {
  eventfd_t ignored;
  eventfd_read(fd_, &ignored);
  absl::MutexLock lock(&mu_);
  return std::exchange(answers_, {});
}

void Mailbox::Close() {
  std::vector<Answered> left;
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    left = std::exchange(answers_, {});
  }
  for (Answered& answered : left) GiveUp(std::move(answered));
}

std::unique_ptr<Exchange> MakeExchange(std::shared_ptr<Call> call,
                                       std::shared_ptr<Mailbox> mailbox,
                                       HttpRequest request) {
  return std::make_unique<LiveExchange>(std::move(call), std::move(mailbox),
                                        std::move(request));
}

}  // namespace sfmamba::http
