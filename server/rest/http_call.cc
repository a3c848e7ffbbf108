#include "server/rest/http_call.h"

#include <cstdint>
#include <utility>
#include <vector>

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

class TypedCall final : public HttpCall {
 public:
  TypedCall(std::unique_ptr<http::Exchange> exchange, PathFields fields,
            absl::Status serving, server::MemoryBudget* memory)
      : HttpCall(std::move(exchange), std::move(fields), std::move(serving)),
        memory_(*memory),
        response_(EncodingFor(Header(request(), "accept"))) {}

  absl::Status Read(call::Message* message) override {
    if (!serving_.ok()) return serving_;
    // Query parameters may set fields of the message. If the path already sets
    // every field, no query parameter is allowed.
    std::vector<call::Message*> by_query;
    if (message->GetDescriptor()->field_count() >
        static_cast<int>(fields_.size())) {
      by_query.push_back(message);
    }
    const absl::Status status = SetFromQuery(request().query, by_query);
    return status.ok() ? SetPathFields(message) : status;
  }

  std::unique_ptr<call::Pictures> ReadPictures(
      int max_images, call::Message* message) override {
    absl::Status status = serving_;
    if (status.ok()) status = headers_;
    std::unique_ptr<call::Pictures> pictures =
        ReadBody(status, max_images, &request(), &memory_, message);
    if (pictures->status().ok()) pictures->set_status(SetPathFields(message));
    if (!pictures->status().ok()) message->Clear();
    return pictures;
  }

  call::ResultSink& results() override { return response_; }

 private:
  http::HttpResponse Respond(call::Message* rest) override {
    return response_.Take(*rest);
  }

  server::MemoryBudget& memory_;
  ResponseBody response_;
};

}  // namespace

HttpCall::HttpCall(std::unique_ptr<http::Exchange> exchange, PathFields fields,
                   absl::Status serving)
    : fields_(std::move(fields)),
      serving_(std::move(serving)),
      exchange_(std::move(exchange)),
      request_bytes_(exchange_->request().body.size()) {
  auto info = CallOf(request(), base::SteadyNow());
  headers_ = info.status();
  if (info.ok()) info_ = *std::move(info);
  info_.peer = request().peer;
  info_.caller = request().caller;
}

absl::Status HttpCall::Admit(security::Scope scope) {
  // If the server has no tokens, local callers have the scope admin. A web page
  // in a local browser must not use this scope on behalf of its user. Browsers
  // add the header Origin to the requests of web pages. A request with this
  // header is therefore refused if it needs the scope admin.
  const bool is_from_page = request().headers.count("origin") > 0;
  return scope == security::Scope::kAdmin && is_from_page
             ? server::OriginRefused()
             : absl::OkStatus();
}

void HttpCall::Finish(const absl::Status& status, call::Message* rest,
                      absl::AnyInvocable<void()> sent) {
  const auto exchange = std::move(exchange_);
  exchange->Answer(
      status.ok() ? Respond(rest) : ErrorAt(exchange->request().path, status),
      std::move(sent));
}

absl::Status HttpCall::SetPathFields(call::Message* request) const {
  const auto& reflection = *request->GetReflection();
  for (const auto& [name, value] : fields_) {
    const auto* field = request->GetDescriptor()->FindFieldByName(name);
    const std::string got = reflection.GetString(*request, field);
    reflection.SetString(request, field, value);
    if (got.empty() || got == value || absl::StrCat("models/", got) == value) {
      continue;
    }
    return server::InvalidField(
        name, absl::StrCat("got \"", got, "\", expected none or \"", value,
                           "\", which the path names"));
  }
  return absl::OkStatus();
}

std::unique_ptr<call::Call> MakeTypedCall(
    std::unique_ptr<http::Exchange> exchange, PathFields fields,
    absl::Status serving, server::MemoryBudget* memory) {
  return std::make_unique<TypedCall>(std::move(exchange), std::move(fields),
                                     std::move(serving), memory);
}

}  // namespace sfmamba::rest
