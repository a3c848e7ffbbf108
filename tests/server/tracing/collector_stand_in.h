#ifndef SFMAMBA_TESTS_SERVER_TRACING_COLLECTOR_STAND_IN_H_
#define SFMAMBA_TESTS_SERVER_TRACING_COLLECTOR_STAND_IN_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "httplib.h"
#include "nlohmann/json.hpp"

namespace sfmamba::tracing {

// A collector on a free port of 127.0.0.1 that keeps what is posted to it.
// Thread-safe.
class CollectorStandIn {
 public:
  // `server` says how it listens: with TLS, for example.
  explicit CollectorStandIn(std::unique_ptr<httplib::Server> server =
                                std::make_unique<httplib::Server>());
  ~CollectorStandIn();

  int port() const { return port_; }
  std::string url() const;  // "http://127.0.0.1:port/v1/traces"

  // Answers have this code and text; `headers` go with each.
  void AnswerWith(int code, httplib::Headers headers = {},
                  std::string text = "{}") ABSL_LOCKS_EXCLUDED(mu_);
  // From now on no answer is sent.
  void Hang() ABSL_LOCKS_EXCLUDED(mu_);

  // The posts so far.
  std::vector<httplib::Request> posts() const ABSL_LOCKS_EXCLUDED(mu_);
  // The spans of all of them, by JSON.
  std::vector<nlohmann::json> spans() const ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until there are `count`.
  bool AwaitSpans(size_t count, absl::Duration limit) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Post(const httplib::Request& request, httplib::Response& response)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<httplib::Server> server_;
  int port_;
  mutable absl::Mutex mu_;
  int code_ ABSL_GUARDED_BY(mu_) = 200;
  httplib::Headers headers_ ABSL_GUARDED_BY(mu_);
  std::string text_ ABSL_GUARDED_BY(mu_) = "{}";
  bool hangs_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<httplib::Request> posts_ ABSL_GUARDED_BY(mu_);
  std::vector<nlohmann::json> spans_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // Last: uses everything above.
};

// The value of a span's attribute, a number as its digits; empty if it has
// none.
std::string AttributeOf(const nlohmann::json& span, const std::string& key);

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_TESTS_SERVER_TRACING_COLLECTOR_STAND_IN_H_
