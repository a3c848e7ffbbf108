#include "server/rest/http_call.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "server/errors/reasons.h"
#include "server/rest/call_headers.h"
#include "server/rest/error_response.h"
#include "server/rest/prediction_body.h"
#include "server/rest/query_fields.h"
#include "server/rest/response_body.h"

namespace sfmamba::rest {
namespace {

class HttpCall final : public call::Call {
 public:
  HttpCall(std::unique_ptr<http::Exchange> exchange, PathField field,
           absl::Status serving, server::MemoryBudget* memory)
      : exchange_(std::move(exchange)),
        field_(std::move(field)),
        serving_(std::move(serving)),
        memory_(*memory),
        request_bytes_(exchange_->request().body.size()),
        response_(EncodingFor(Header(exchange_->request(), "accept"))) {
    const http::HttpRequest& request = exchange_->request();
    auto info = CallOf(request, base::SteadyNow());
    headers_ = info.status();
    if (info.ok()) info_ = *std::move(info);
    info_.peer = request.peer;
    info_.caller = request.caller;
  }

  int64_t request_bytes() const override { return request_bytes_; }
  absl::Status Admit(security::Scope) override { return absl::OkStatus(); }

  absl::Status Read(call::Message* request) override {
    if (!serving_.ok()) return serving_;
    // The query sets what the path does not.
    std::vector<call::Message*> by_query;
    const int by_path = field_.name.empty() ? 0 : 1;
    if (request->GetDescriptor()->field_count() > by_path) {
      by_query.push_back(request);
    }
    const absl::Status status =
        SetFromQuery(exchange_->request().query, by_query);
    return status.ok() ? SetPathField(request) : status;
  }

  std::unique_ptr<call::Pictures> ReadPictures(
      int max_images, call::Message* request) override {
    absl::Status status = serving_;
    if (status.ok()) status = headers_;
    std::unique_ptr<call::Pictures> pictures =
        ReadBody(status, max_images, &exchange_->request(), &memory_, request);
    if (pictures->status().ok()) pictures->set_status(SetPathField(request));
    if (!pictures->status().ok()) request->Clear();
    return pictures;
  }

  void OnCancel(absl::AnyInvocable<void()> cancelled) override {
    exchange_->OnCancel(std::move(cancelled));
  }
  call::ResultSink& results() override { return response_; }
  void Finish(const absl::Status& status, const call::Message* rest,
              absl::AnyInvocable<void()> sent) override {
    const auto exchange = std::move(exchange_);
    exchange->Answer(
        status.ok() ? response_.Take(*rest) : ErrorResponse(status),
        std::move(sent));
  }

 private:
  // Sets the path's field. INVALID_ARGUMENT if the body sets it otherwise.
  absl::Status SetPathField(call::Message* request) const {
    if (field_.name.empty()) return absl::OkStatus();
    const auto& fields = *request->GetReflection();
    const auto* field = request->GetDescriptor()->FindFieldByName(field_.name);
    const std::string got = fields.GetString(*request, field);
    fields.SetString(request, field, field_.value);
    if (got.empty() || got == field_.value ||
        absl::StrCat("models/", got) == field_.value) {
      return absl::OkStatus();
    }
    return server::InvalidField(
        field_.name, absl::StrCat("got \"", got, "\", expected none or \"",
                                  field_.value, "\", which the path names"));
  }

  // Null once it is answered. If it ends unanswered it answers 500.
  std::unique_ptr<http::Exchange> exchange_;
  const PathField field_;
  const absl::Status serving_;
  server::MemoryBudget& memory_;
  const int64_t request_bytes_;
  absl::Status headers_;  // An error if they cannot be parsed.
  ResponseBody response_;
};

}  // namespace

std::unique_ptr<call::Call> MakeHttpCall(
    std::unique_ptr<http::Exchange> exchange, PathField field,
    absl::Status serving, server::MemoryBudget* memory) {
  return std::make_unique<HttpCall>(std::move(exchange), std::move(field),
                                    std::move(serving), memory);
}

}  // namespace sfmamba::rest
