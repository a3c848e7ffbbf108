#include "server/observability/metrics_server.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "httplib.h"
#include "prometheus/text_serializer.h"
#include "server/base/thread_name.h"

namespace sfmamba::observability {
namespace {

constexpr int kThreads = 4;
// A client that says nothing or takes nothing for so long loses its connection,
// so that it does not keep others from a thread.
constexpr std::chrono::seconds kReadTimeout{1};
constexpr std::chrono::seconds kWriteTimeout{5};
constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// The library's own choice, SO_REUSEPORT, would let two servers share a port
// and each get some of the scrapes.
void ReuseAddress(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

std::string WithoutBrackets(absl::string_view host) {
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

}  // namespace

MetricsServer::MetricsServer(const Metrics& metrics)
    : http_(std::make_unique<httplib::Server>()) {
  http_->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  http_->set_socket_options(ReuseAddress);
  http_->set_keep_alive_max_count(
      1);  // No client holds a thread between scrapes.
  http_->set_read_timeout(kReadTimeout);
  http_->set_write_timeout(kWriteTimeout);
  http_->Get("/metrics",
             [&metrics](const httplib::Request&, httplib::Response& response) {
               response.set_content(
                   prometheus::TextSerializer().Serialize(metrics.Collect()),
                   kContentType);
             });
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& host, int port, const Metrics& metrics) {
  auto server = absl::WrapUnique(new MetricsServer(metrics));
  const std::string address = WithoutBrackets(host);
  httplib::Server& http = *server->http_;
  errno = 0;
  server->port_ = port == 0 ? http.bind_to_any_port(address)
                  : http.bind_to_port(address, port) ? port
                                                     : -1;
  if (server->port_ < 0) {
    const int error = errno;
    return absl::UnavailableError(absl::StrCat(
        "cannot bind the metrics port: ", host, ":", port, ": ",
        error == 0 ? "not an address of this machine" : std::strerror(error)));
  }
  server->thread_ = std::thread([&http] {
    server::NameThisThread("metrics");
    http.listen_after_bind();
  });
  // Before that, stop() would do nothing.
  while (!http.is_running()) std::this_thread::yield();
  return server;
}

MetricsServer::~MetricsServer() {
  http_->stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace sfmamba::observability
