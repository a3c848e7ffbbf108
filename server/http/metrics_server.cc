#include "server/http/metrics_server.h"

#include <utility>

#include "absl/memory/memory.h"
#include "httplib.h"
#include "prometheus/text_serializer.h"

namespace sfmamba::http {
namespace {

constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& host, int port, observability::Metrics* metrics) {
  HttpServer::Options options;
  options.what = "the metrics port";
  options.host = host;
  options.port = port;
  options.refused = [metrics] { metrics->HttpConnectionRefused(); };
  absl::StatusOr<std::unique_ptr<HttpServer>> http =
      HttpServer::Start(std::move(options), [metrics](httplib::Server& routes) {
        routes.Get("/metrics", [metrics](const httplib::Request&,
                                         httplib::Response& response) {
          response.set_content(
              prometheus::TextSerializer().Serialize(metrics->Collect()),
              kContentType);
        });
      });
  if (!http.ok()) return http.status();
  return absl::WrapUnique(new MetricsServer(*std::move(http)));
}

}  // namespace sfmamba::http
