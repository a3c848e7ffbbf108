// Tests a rolling update under load, as in Kubernetes. Servers of a new version
// start while the old ones still run. Then the old ones stop. No call may be
// lost.

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/rpc/vision_client.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

// The pause between two calls.
constexpr absl::Duration kPause = absl::Milliseconds(3);
constexpr absl::Duration kDeadline = absl::Seconds(20);

v1::ClassifyRequest GreyRequest() {
  v1::ClassifyRequest request;
  request.set_model("tiny");
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(64);
  pixels.set_height(64);
  pixels.set_format(v1::PixelBuffer::GRAY8);
  pixels.set_data(std::string(64 * 64, 'x'));
  return request;
}

// Returns a port on which no server listens. It is below the ports that Linux
// gives to clients, so it stays free until the test uses it.
int FreePort() {
  std::random_device random;
  while (true) {
    const int port = std::uniform_int_distribution<>(20000, 31999)(random);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool bound =
        bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    close(fd);
    if (bound) return port;
  }
}

// Calls repeatedly on a separate thread until Stop().
class Load {
 public:
  virtual ~Load() = default;

  void Start() {
    thread_ = std::thread([this] {
      while (!stop_.load()) {
        Call();
        absl::SleepFor(kPause);
      }
      End();
    });
  }
  void Stop() {
    stop_.store(true);
    Join(thread_, "the end of a load");
  }

  int answered() const { return answered_.load(); }
  // Returns the errors of calls that did not end with OK. May be called only
  // after Stop().
  const std::vector<std::string>& lost() const { return lost_; }

 protected:
  virtual void Call() = 0;
  virtual void End() {}
  void Answered() { answered_.fetch_add(1); }
  void Lost(const std::string& why) { lost_.push_back(why); }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> answered_{0};
  std::vector<std::string> lost_;
  std::thread thread_;
};

class UnaryLoad : public Load {
 public:
  explicit UnaryLoad(client::VisionClient* client) : client_(client) {}

 private:
  void Call() override {
    const auto response = client_->Classify(request_, kDeadline);
    if (response.ok()) {
      Answered();
    } else {
      Lost(response.status().ToString());
    }
  }

  client::VisionClient* const client_;
  const v1::ClassifyRequest request_ = GreyRequest();
};

// Keeps four requests in flight on a stream. When the server announces that it
// drains, sends no more requests on this stream and opens another one. If a
// request got no answer, or if its answer was UNAVAILABLE, sends it again on
// the next stream.
class StreamLoad : public Load {
 public:
  explicit StreamLoad(client::VisionClient* client) : client_(client) {}

 private:
  static constexpr size_t kInFlight = 4;

  void Call() override {
    if (stream_ == nullptr) Open();
    while (open_.size() < kInFlight) {
      const std::string id = absl::StrCat(++last_);
      open_[id] = true;
      if (!Send(id)) return Leave();
    }
    v1::StreamPredictResponse answer;
    if (!stream_->Receive(&answer) || !Take(answer)) Leave();
  }

  void End() override {
    if (stream_ != nullptr) Leave();
    for (int tries = 0; !open_.empty() && tries < 10; ++tries) {
      Open();
      Leave();
    }
    for (const auto& open : open_) Lost("never answered: " + open.first);
  }

  void Open() {
    v1::StreamConfig config;
    config.set_max_in_flight(kInFlight);
    stream_ = client_->OpenStream(config);
    for (const auto& open : open_) Send(open.first);
  }

  bool Send(const std::string& id) {
    v1::StreamPredictRequest message;
    message.set_correlation_id(id);
    *message.mutable_classify() = request_;
    return stream_->Send(message);
  }

  // Ends the sending side of this stream and reads the answers that still
  // arrive.
  void Leave() {
    stream_->SendNoMore();
    v1::StreamPredictResponse answer;
    while (stream_->Receive(&answer)) Take(answer);
    const absl::Status status = stream_->Finish();
    if (!status.ok() && !absl::IsUnavailable(status)) Lost(status.ToString());
    stream_ = nullptr;
  }

  // Processes a message from the server. Returns false if it announces a drain.
  bool Take(const v1::StreamPredictResponse& answer) {
    if (answer.has_notice()) return false;
    if (answer.has_error() &&
        answer.error().code() == int(absl::StatusCode::kUnavailable)) {
      return true;  // The request stays in open_ and is sent again.
    }
    if (answer.has_error()) Lost(answer.error().message());
    if (open_.erase(answer.correlation_id()) != 1) {
      Lost("answered twice: " + answer.correlation_id());
    }
    if (answer.has_classify()) Answered();
    return true;
  }

  client::VisionClient* const client_;
  const v1::ClassifyRequest request_ = GreyRequest();
  std::unique_ptr<client::PredictStream> stream_;
  std::map<std::string, bool> open_;  // The ids of requests without an answer.
  int last_ = 0;
};

// Keeps one connection as long as the server answers. After a 503, or when the
// connection ends, connects to the next server.
class RestLoad : public Load {
 public:
  explicit RestLoad(const std::vector<int>& ports) {
    for (const int port : ports) {
      clients_.push_back(std::make_unique<httplib::Client>("127.0.0.1", port));
      clients_.back()->set_keep_alive(true);
    }
  }

 private:
  void Call() override {
    const absl::Time deadline = absl::Now() + kDeadline;
    std::string why;
    while (absl::Now() < deadline) {
      const httplib::Result answer = clients_[at_ % clients_.size()]->Post(
          "/v1/models/tiny:classify", body_, "application/x-protobuf");
      if (answer && answer->status == 200) return Answered();
      if (answer && answer->status != 503) {
        return Lost(absl::StrCat(answer->status, " ", answer->body));
      }
      why = answer ? answer->body : httplib::to_string(answer.error());
      ++at_;
      absl::SleepFor(kPause);
    }
    Lost(why);
  }

  const std::string body_ = GreyRequest().SerializeAsString();
  std::vector<std::unique_ptr<httplib::Client>> clients_;
  size_t at_ = 0;
};

// Returns the number of images that a server has answered, over any transport.
double AnsweredBy(const ServerProcess& server) {
  return SumOf(Samples(HttpGet(server.metrics_port(), "/metrics")),
               "sfmamba_items_total", {R"(outcome="ok")"});
}

TEST(RollingUpdateTest, NoCallIsLost) {
  const std::vector<std::string> flags = {
      "--model_repository=" + WriteTinyModel(), "--drain_delay=1s",
      "--drain_timeout=20s"};
  auto first = std::make_unique<ServerProcess>(flags);
  auto second = std::make_unique<ServerProcess>(flags);
  ASSERT_TRUE(first->WaitUntilServing()) << first->output();
  ASSERT_TRUE(second->WaitUntilServing()) << second->output();
  const int new_port = FreePort();
  const int new_http_port = FreePort();
  client::VisionClient client(absl::StrCat("ipv4:", first->address(), ",",
                                           second->address(),
                                           ",127.0.0.1:", new_port));
  std::vector<std::unique_ptr<Load>> loads;
  for (int i = 0; i < 3; ++i) {
    loads.push_back(std::make_unique<UnaryLoad>(&client));
  }
  for (int i = 0; i < 2; ++i) {
    loads.push_back(std::make_unique<StreamLoad>(&client));
  }
  loads.push_back(std::make_unique<RestLoad>(std::vector<int>{
      first->http_port(), second->http_port(), new_http_port}));
  for (const auto& load : loads) load->Start();
  const auto each_has = [&](int more) {
    std::vector<int> goals;
    for (const auto& load : loads) goals.push_back(load->answered() + more);
    WaitUntil(
        [&] {
          absl::SleepFor(kPause);
          for (size_t i = 0; i < loads.size(); ++i) {
            if (loads[i]->answered() < goals[i]) return false;
          }
          return true;
        },
        "answers of each load");
  };
  each_has(20);
  EXPECT_GT(AnsweredBy(*first), 0);
  EXPECT_GT(AnsweredBy(*second), 0);

  // One old server gets SIGTERM while a new server starts.
  first->Signal(SIGTERM);
  std::vector<std::string> new_flags = flags;
  new_flags.push_back(absl::StrCat("--port=", new_port));
  new_flags.push_back(absl::StrCat("--http_port=", new_http_port));
  auto third = std::make_unique<ServerProcess>(new_flags);
  each_has(20);
  EXPECT_EQ(first->Wait(), 0) << first->output();
  ASSERT_TRUE(third->WaitUntilServing()) << third->output();
  // The client finds the new server.
  WaitUntil(
      [&] {
        absl::SleepFor(absl::Milliseconds(50));
        return AnsweredBy(*third) > 20;
      },
      "calls to the new server");

  // The second old server gets SIGTERM. Its calls continue on the new server.
  second->Signal(SIGTERM);
  each_has(20);
  EXPECT_EQ(second->Wait(), 0) << second->output();
  each_has(20);
  for (const auto& load : loads) {
    load->Stop();
    EXPECT_EQ(load->lost(), std::vector<std::string>());
  }
}

}  // namespace
}  // namespace sfmamba
