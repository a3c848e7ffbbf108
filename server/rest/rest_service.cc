#include "server/rest/rest_service.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "server/errors/reasons.h"
#include "server/rest/error_response.h"

namespace sfmamba::rest {
namespace {

constexpr size_t kMaxShown = 256;  // Most bytes shown of an unknown path.

bool IsUnder(absl::string_view path, absl::string_view folder) {
  return absl::StartsWith(path, folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

// Answers methods other than GET and HEAD; false for those two.
bool RefuseUnlessRead(http::Exchange* exchange) {
  const std::string& method = exchange->request().method;
  if (method == "GET" || method == "HEAD") return false;
  exchange->Answer(OtherMethod(method, "GET, HEAD, OPTIONS"), [] {});
  return true;
}

void AnswerProbe(http::Exchange* exchange, bool good) {
  if (RefuseUnlessRead(exchange)) return;
  http::HttpResponse response;
  response.status = good ? 200 : 503;
  response.headers = {{"Content-Type", "text/plain; charset=utf-8"},
                      {"Cache-Control", "no-store"}};
  response.body = {good ? "ok\n" : "not ok\n"};
  exchange->Answer(std::move(response), [] {});
}

}  // namespace

// Answers INTERNAL if it is dropped, because something threw on the way.
class RestService::Tracked final : public http::Exchange {
 public:
  Tracked(RestService* service, std::unique_ptr<http::Exchange> exchange)
      : service_(service), exchange_(std::move(exchange)) {
    absl::MutexLock lock(&service_->mu_);
    ++service_->open_;
  }
  ~Tracked() override {
    if (exchange_ == nullptr) return;
    Answer(ErrorResponse(absl::InternalError("the request was dropped")),
           [] {});
  }

  http::HttpRequest& request() override { return exchange_->request(); }
  void OnCancel(absl::AnyInvocable<void()> cancelled) override {
    exchange_->OnCancel(std::move(cancelled));
  }
  void Answer(http::HttpResponse response,
              absl::AnyInvocable<void()> sent) override {
    // The answer's callback may destroy the exchange.
    const auto exchange = std::move(exchange_);
    exchange->Answer(std::move(response),
                     [service = service_, sent = std::move(sent)]() mutable {
                       sent();
                       // What it holds goes before the service may end.
                       sent = nullptr;
                       service->Ended();
                     });
  }

 private:
  RestService* const service_;
  std::unique_ptr<http::Exchange> exchange_;  // Null once answered.
};

RestService::RestService(prediction::PredictionEnvironment environment,
                         Options options)
    : options_(std::move(options)),
      vision_(std::move(environment), [this] { return CheckServing(); }) {}

RestService::~RestService() { WaitUntilIdle(absl::InfiniteDuration()); }

absl::Status RestService::CheckServing() const {
  return draining_.load() ? server::Draining("the server") : absl::OkStatus();
}

bool RestService::WaitUntilIdle(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  return ended_.Await(
      &mu_, timeout,
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return open_ == 0; });
}

void RestService::Ended() {
  absl::MutexLock lock(&mu_);
  --open_;
  ended_.SignalAll();
}

void RestService::Handle(std::unique_ptr<http::Exchange> untracked) {
  std::unique_ptr<http::Exchange> exchange =
      std::make_unique<Tracked>(this, std::move(untracked));
  const std::string& path = exchange->request().path;
  if (base::Utf8Length(path) < 0) {
    exchange->Answer(RefusalResponse(400, "the path is not UTF-8"), [] {});
  } else if (path == "/healthz" || path == "/livez") {
    AnswerProbe(exchange.get(), options_.live());
  } else if (path == "/readyz") {
    AnswerProbe(exchange.get(), options_.ready());
  } else if (path == "/metrics" && options_.metrics) {
    if (!RefuseUnlessRead(exchange.get())) {
      exchange->Answer(options_.metrics(exchange->request()), [] {});
    }
  } else if (IsUnder(path, "/v1/models")) {
    vision_.Handle(std::move(exchange));
  } else if (IsUnder(path, "/v2") && options_.kserve) {
    options_.kserve(std::move(exchange));
  } else if ((path == "/" || IsUnder(path, "/console")) && options_.console) {
    options_.console(std::move(exchange));
  } else {
    exchange->Answer(
        RefusalResponse(
            404, absl::StrCat("there is no path ",
                              absl::CHexEscape(path.substr(0, kMaxShown)))),
        [] {});
  }
}

}  // namespace sfmamba::rest
