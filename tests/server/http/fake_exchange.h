#ifndef SFMAMBA_TESTS_SERVER_HTTP_FAKE_EXCHANGE_H_
#define SFMAMBA_TESTS_SERVER_HTTP_FAKE_EXCHANGE_H_

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "server/http/exchange.h"
#include "tests/testing/patience.h"

namespace sfmamba::http {

// A client that makes exchanges without a connection:
//   FakeClient client;
//   handler(client.Ask({"POST", "/v1/models/a:classify"}));
//   EXPECT_EQ(client.Answer().status, 200);
//   client.TakeAnswer();
// A client sends only one request. It must outlive the exchange. Thread-safe.
class FakeClient {
 public:
  std::unique_ptr<Exchange> Ask(HttpRequest request) {
    return std::make_unique<FakeExchange>(this, std::move(request));
  }

  // Waits for the answer and returns it. Fails after a time limit. The answer
  // is valid until TakeAnswer() or Cancel() is called.
  const HttpResponse& Answer() {
    TimeLimit limit("the answer to an HTTP request");
    absl::MutexLock lock(&mu_, absl::Condition(&answered_));
    return response_;
  }
  // Waits like Answer(). Returns the answer's body as one string.
  std::string Body() {
    std::string body;
    for (const std::string& piece : Answer().body) body += piece;
    return body;
  }
  // Returns the value of the answer's header, or "" if the answer has no such
  // header.
  std::string Header(const std::string& name) {
    for (const auto& [key, value] : Answer().headers) {
      if (absl::EqualsIgnoreCase(key, name)) return value;
    }
    return "";
  }
  bool answered() {
    absl::MutexLock lock(&mu_);
    return answered_;
  }

  // Calls `sent`, like a client that has received the answer. May be called
  // only after Answer().
  void TakeAnswer() { Call(&sent_); }

  // Acts like a client that disconnects. Calls the function that was given to
  // OnCancel(), now or as soon as it is given. Also calls `sent`, because the
  // answer is dropped.
  void Cancel() {
    {
      absl::MutexLock lock(&mu_);
      gone_ = true;
    }
    Call(&cancelled_);
    Call(&sent_);
  }

 private:
  class FakeExchange : public Exchange {
   public:
    FakeExchange(FakeClient* client, HttpRequest request)
        : client_(*client), request_(std::move(request)) {}

    HttpRequest& request() override { return request_; }
    void OnCancel(absl::AnyInvocable<void()> cancelled) override {
      client_.OnCancel(std::move(cancelled));
    }
    void Answer(HttpResponse response,
                absl::AnyInvocable<void()> sent) override {
      client_.OnAnswer(std::move(response), std::move(sent));
    }

   private:
    FakeClient& client_;
    HttpRequest request_;
  };

  void OnCancel(absl::AnyInvocable<void()> cancelled) {
    {
      absl::MutexLock lock(&mu_);
      cancelled_ = std::move(cancelled);
      if (!gone_) return;
    }
    Call(&cancelled_);
  }

  void OnAnswer(HttpResponse response, absl::AnyInvocable<void()> sent) {
    {
      absl::MutexLock lock(&mu_);
      if (answered_) std::abort();  // A request is answered only once.
      response_ = std::move(response);
      answered_ = true;
      if (!gone_) {
        sent_ = std::move(sent);
        return;
      }
    }
    sent();  // The client may be destroyed now.
  }

  void Call(absl::AnyInvocable<void()>* function) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::AnyInvocable<void()> taken;
    {
      absl::MutexLock lock(&mu_);
      taken = std::exchange(*function, nullptr);
    }
    if (taken) taken();
  }

  absl::Mutex mu_;
  HttpResponse response_ ABSL_GUARDED_BY(mu_);
  absl::AnyInvocable<void()> cancelled_ ABSL_GUARDED_BY(mu_);
  absl::AnyInvocable<void()> sent_ ABSL_GUARDED_BY(mu_);
  bool answered_ ABSL_GUARDED_BY(mu_) = false;
  bool gone_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_TESTS_SERVER_HTTP_FAKE_EXCHANGE_H_
