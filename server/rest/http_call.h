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

// Implements call::Call over HTTP. The caller was checked when the request's
// head arrived, see access.h. Derived classes define the formats of requests
// and responses.
class HttpCall : public call::Call {
 public:
  // `serving` is OK, or the error with which the call must fail. For example,
  // calls fail with UNAVAILABLE while the server drains.
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
  // Sets the fields that the path contains, such as the model's name. Returns
  // INVALID_ARGUMENT if the body has set such a field to a different value.
  absl::Status SetPathFields(call::Message* request) const;
  // Returns the HTTP response of a successful call. `rest` (the remainder) is
  // the response message without the field `results`. The derived class has
  // already received the results through results(), see call::ResultSink. The
  // contents of `rest` may be moved out.
  virtual http::HttpResponse Respond(call::Message* rest) = 0;

  http::HttpRequest& request() { return exchange_->request(); }

  const PathFields fields_;
  const absl::Status serving_;
  absl::Status headers_;  // An error if the request's headers are invalid.

 private:
  // Null after Finish(). If the exchange is destroyed without a response, the
  // client receives status 500.
  std::unique_ptr<http::Exchange> exchange_;
  const int64_t request_bytes_;
};

// Returns a call of the typed API (sfmamba.v1). See docs/serving.md, "REST",
// for the formats of requests and responses. `memory` must outlive the call.
std::unique_ptr<call::Call> MakeTypedCall(
    std::unique_ptr<http::Exchange> exchange, PathFields fields,
    absl::Status serving, server::MemoryBudget* memory);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_HTTP_CALL_H_
