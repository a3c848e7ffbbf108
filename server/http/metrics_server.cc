#include "server/http/metrics_server.h"

#include <string>
#include <utility>

#include "prometheus/text_serializer.h"
#include "server/http/gzip.h"

namespace sfmamba::http {
namespace {

constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

HttpResponse Answer(const HttpRequest& request,
                    observability::Metrics& metrics) {
  if (request.path != "/metrics" ||
      (request.method != "GET" && request.method != "HEAD")) {
    return PlainRefusal(404, "expected GET /metrics");
  }
  return MetricsResponse(request, metrics);
}

}  // namespace

HttpResponse MetricsResponse(const HttpRequest& request,
                             observability::Metrics& metrics) {
  HttpResponse response;
  response.headers = {{"Content-Type", kContentType}};
  std::string text = prometheus::TextSerializer().Serialize(metrics.Collect());
  if (TakesGzip(request)) {
    std::string packed = Gzip(text);
    if (!packed.empty()) {
      response.headers.push_back({"Content-Encoding", "gzip"});
      text = std::move(packed);
    }
  }
  response.body = {std::move(text)};
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
      std::move(options), [metrics](std::unique_ptr<Exchange> exchange) {
        HttpResponse response = Answer(exchange->request(), *metrics);
        exchange->Answer(std::move(response));
      });
}

}  // namespace sfmamba::http
