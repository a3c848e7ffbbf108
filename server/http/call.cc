#include "server/http/call.h"

namespace sfmamba::http {

class Call::LiveExchange : public Exchange {
 public:
  LiveExchange(std::shared_ptr<Call> call, HttpRequest request)
      : call_(std::move(call)), request_(std::move(request)) {}
  ~LiveExchange() override {
    if (call_ != nullptr) Post({});
  }

  HttpRequest& request() override { return request_; }
  void OnCancel(absl::AnyInvocable<void()> cancelled) override {
    call_->cancellation_.OnCancel(std::move(cancelled));
  }
  void Answer(HttpResponse response, absl::AnyInvocable<void()> sent) override {
    Post({AtEnd(std::move(sent)), std::move(response)});
  }

 private:
  void Post(Answered answered) {
    request_ = HttpRequest();
    call_->body_.Release();
    Call& call = *call_;
    call.post_(std::move(call_), std::move(answered));
  }

  std::shared_ptr<Call> call_;  // Null after the exchange was answered.
  HttpRequest request_;
};

std::unique_ptr<Exchange> Call::MakeExchange(std::shared_ptr<Call> call,
                                             HttpRequest request) {
  return std::make_unique<LiveExchange>(std::move(call), std::move(request));
}

}  // namespace sfmamba::http
