#include "tests/server/tracing/collector_stand_in.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace sfmamba::tracing {

using nlohmann::json;

CollectorStandIn::CollectorStandIn(std::unique_ptr<httplib::Server> server)
    : server_(std::move(server)),
      port_(server_->bind_to_any_port("127.0.0.1")) {
  server_->Post(
      ".*", [this](const httplib::Request& request,
                   httplib::Response& response) { Post(request, response); });
  thread_ = std::thread([this] { server_->listen_after_bind(); });
  while (!server_->is_running()) std::this_thread::yield();
}

CollectorStandIn::~CollectorStandIn() {
  {
    absl::MutexLock lock(&mu_);
    ending_ = true;
  }
  server_->stop();
  thread_.join();
}

std::string CollectorStandIn::url() const {
  return absl::StrCat("http://127.0.0.1:", port_, "/v1/traces");
}

void CollectorStandIn::AnswerWith(int code, httplib::Headers headers,
                                  std::string text) {
  absl::MutexLock lock(&mu_);
  code_ = code;
  text_ = std::move(text);
  headers_ = std::move(headers);
}

void CollectorStandIn::Hang() {
  absl::MutexLock lock(&mu_);
  hangs_ = true;
}

std::vector<httplib::Request> CollectorStandIn::posts() const {
  absl::MutexLock lock(&mu_);
  return posts_;
}

std::vector<json> CollectorStandIn::spans() const {
  absl::MutexLock lock(&mu_);
  return spans_;
}

bool CollectorStandIn::AwaitSpans(size_t count, absl::Duration limit) const {
  const auto come = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return spans_.size() >= count;
  };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&come), limit);
}

void CollectorStandIn::Post(const httplib::Request& request,
                            httplib::Response& response) {
  const json body = json::parse(request.body, nullptr, false);
  absl::MutexLock lock(&mu_);
  posts_.push_back(request);
  if (body.is_object() && body.contains("resourceSpans")) {
    for (const json& scope : body["resourceSpans"][0]["scopeSpans"]) {
      for (const json& span : scope["spans"]) spans_.push_back(span);
    }
  }
  const auto may_answer = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ending_ || !hangs_;
  };
  mu_.Await(absl::Condition(&may_answer));
  response.status = code_;
  response.headers = headers_;
  response.set_content(text_, "application/json");
}

std::string AttributeOf(const json& span, const std::string& key) {
  for (const json& attribute : span["attributes"]) {
    if (attribute["key"] != key) continue;
    const json& value = attribute["value"];
    return value.contains("intValue") ? value["intValue"]
                                      : value["stringValue"];
  }
  return "";
}

}  // namespace sfmamba::tracing
