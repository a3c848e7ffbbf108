#ifndef SFMAMBA_SERVER_REST_HTTP_CALL_H_
#define SFMAMBA_SERVER_REST_HTTP_CALL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/call/call.h"
#include "server/http/exchange.h"
#include "server/rest/method_paths.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {

// A call over HTTP. The caller was admitted when the request's head had come:
// see access.h. A derived class says how requests and responses are written.
class HttpCall : public call::Call {
 public:
  // `serving` is the error that requests are answered with, or OK.
  HttpCall(std::unique_ptr<http::Exchange> exchange, PathFields fields,
           absl::Status serving);

  int64_t request_bytes() const override { return request_bytes_; }
  absl::Status Admit(security::Scope scope) override;
  void OnCancel(absl::AnyInvocable<void()> cancelled) override {
    exchange_->OnCancel(std::move(cancelled));
  }
  void Finish(const absl::Status& status, call::Message* rest,
              absl::AnyInvocable<void()> sent) override;

 protected:
  // Sets the fields that the path has. INVALID_ARGUMENT if the body has set one
  // otherwise.
  absl::Status SetPathFields(call::Message* request) const;
  // Writes the response, OK, and may take the contents of `rest`.
  virtual http::HttpResponse Respond(call::Message* rest) = 0;

  http::HttpRequest& request() { return exchange_->request(); }

  const PathFields fields_;
  const absl::Status serving_;
  absl::Status headers_;  // An error if they cannot be parsed.

 private:
  // Null once it is answered. If it ends unanswered it answers 500.
  std::unique_ptr<http::Exchange> exchange_;
  const int64_t request_bytes_;
};

// Makes a call of the typed API. docs/serving.md, "REST", says how requests and
// responses are written. `memory` outlives the call.
std::unique_ptr<call::Call> MakeTypedCall(
    std::unique_ptr<http::Exchange> exchange, PathFields fields,
    absl::Status serving, server::MemoryBudget* memory);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_HTTP_CALL_H_
