#ifndef SFMAMBA_TESTS_SERVER_HTTP_CONNECTION_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_HTTP_CONNECTION_FIXTURE_H_

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba::http {

inline constexpr char kGet[] = "GET /a HTTP/1.1\r\n\r\n";

inline HttpResponse Text(std::string text) {
  HttpResponse response;
  response.body = {std::move(text)};
  return response;
}

// Returns a response of 64 MiB. The socket buffers are smaller than this, so
// the server cannot send the whole response while the client does not read.
inline HttpResponse Large() {
  HttpResponse response;
  response.body.assign(64, std::string(1 << 20, 'x'));
  return response;
}

// Keeps requests for /a until the test answers them. Answers other requests
// with "other".
class ConnectionTest : public testing::Test {
 protected:
  void Start() {
    options_.host = "127.0.0.1";
    auto server =
        HttpServer::Start(options_, [this](std::unique_ptr<Exchange> exchange) {
          if (exchange->request().path != "/a") {
            return exchange->Answer(Text("other"));
          }
          absl::MutexLock lock(&mu_);
          exchanges_.push_back(std::move(exchange));
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Waits for the next request for /a and returns it.
  std::unique_ptr<Exchange> Next() {
    TimeLimit limit("a request over HTTP");
    const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return !exchanges_.empty();
    };
    absl::MutexLock lock(&mu_, absl::Condition(&any));
    auto exchange = std::move(exchanges_.front());
    exchanges_.pop_front();
    return exchange;
  }
  bool IsAsked() {
    absl::MutexLock lock(&mu_);
    return !exchanges_.empty();
  }
  std::string Other() { return HttpGet(server_->port(), "/other"); }

  HttpOptions options_;
  absl::Mutex mu_;
  std::deque<std::unique_ptr<Exchange>> exchanges_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<HttpServer> server_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_TESTS_SERVER_HTTP_CONNECTION_FIXTURE_H_
