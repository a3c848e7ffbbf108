#include "server/http/metrics_server.h"

#include <memory>
#include <string>
#include <utility>

#include "base/steady_clock.h"
#include "prometheus/text_serializer.h"
#include "server/http/gzip.h"

namespace sfmamba::http {
namespace {

constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

HttpResponse Answer(const HttpRequest& request, MetricsPage& page) {
  if (request.path != "/metrics" ||
      (request.method != "GET" && request.method != "HEAD")) {
    return PlainRefusal(404, "expected GET /metrics");
  }
  return page.Answer(request);
}

}  // namespace

HttpResponse MetricsPage::Answer(const HttpRequest& request) {
  HttpResponse response;
  response.headers = {{"Content-Type", kContentType}};
  absl::MutexLock lock(&mu_);
  if (begun_ <= request.came) {
    begun_ = base::SteadyNow();
    text_ = prometheus::TextSerializer().Serialize(metrics_.Collect());
    packed_.clear();
  }
  const bool packs = TakesGzip(request);
  if (packs && packed_.empty()) packed_ = Gzip(text_);
  if (packs && !packed_.empty()) {
    response.headers.push_back({"Content-Encoding", "gzip"});
    response.body = {packed_};
  } else {
    response.body = {text_};
  }
  return response;
}

absl::StatusOr<std::unique_ptr<HttpServer>> StartMetricsServer(
    const std::string& host, int port, observability::Metrics* metrics) {
  HttpOptions options;
  options.what = "the metrics port";
  options.host = host;
  options.port = port;
  options.max_connections = 256;
  options.max_body_bytes = 0;
  options.answer_time = absl::Seconds(10);
  options.idle_time = absl::ZeroDuration();
  options.refused = [metrics] { metrics->HttpConnectionRefused(); };
  return HttpServer::Start(
      std::move(options), [page = std::make_shared<MetricsPage>(metrics)](
                              std::unique_ptr<Exchange> exchange) {
        exchange->Answer(Answer(exchange->request(), *page));
      });
}

}  // namespace sfmamba::http
