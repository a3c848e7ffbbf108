#include "tests/server/ceiling/load.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace sfmamba {
namespace {

constexpr int kChannels = 2;

// Measures the CPU time that the server and the client use.
class Meter {
 public:
  explicit Meter(const ServerChild& server) : server_(server) {}

  Rate Read(int64_t count, int64_t other) const {
    const double micros = 1e6 / count;
    return {count / absl::ToDoubleSeconds(absl::Now() - start_),
            absl::ToDoubleSeconds(server_.ProcessorTime() - server_before_) *
                micros,
            absl::ToDoubleSeconds(OwnProcessorTime() - client_before_) * micros,
            other};
  }

 private:
  const ServerChild& server_;
  const absl::Time start_ = absl::Now();
  const absl::Duration server_before_ = server_.ProcessorTime();
  const absl::Duration client_before_ = OwnProcessorTime();
};

class Calls {
 public:
  Calls(const std::string& address, const std::string& method,
        const std::string& message, grpc::StatusCode code)
      : method_(method), code_(code) {
    const grpc::Slice slice(message);
    message_ = grpc::ByteBuffer(&slice, 1);
    for (int i = 0; i < kChannels; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetInt("channel", i);
      stubs_.push_back(
          std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
              address, grpc::InsecureChannelCredentials(), arguments)));
    }
  }

  Rate Run(const ServerChild& server, absl::Duration time) {
    const Meter meter(server);
    for (int i = 0; i < kRequestsInFlight; ++i) Start(i % kChannels);
    absl::SleepFor(time);
    const Rate rate = meter.Read(ended_, other_);
    stop_ = true;
    open_.Wait();
    return rate;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
  };

  void Start(int channel) {
    auto* call = new Call;
    call->context.set_deadline(std::chrono::system_clock::now() +
                               std::chrono::seconds(10));
    stubs_[channel]->UnaryCall(
        &call->context, method_, grpc::StubOptions(), &message_,
        &call->response, [this, call, channel](const grpc::Status& status) {
          delete call;
          ++(status.error_code() == code_ ? ended_ : other_);
          if (stop_) return open_.DecrementCount(), void();
          Start(channel);
        });
  }

  const std::string method_;
  const grpc::StatusCode code_;
  grpc::ByteBuffer message_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::atomic<int64_t> ended_{0}, other_{0};
  std::atomic<bool> stop_{false};
  absl::BlockingCounter open_{kRequestsInFlight};
};

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address))) {
    std::abort();
  }
  return fd;
}

// Sends the request and receives the answer. Returns true if the answer has
// status 200. Returns false if it has another status or if the connection
// fails. `answer` is a buffer that the caller reuses for all requests of a
// connection. It must be empty, and is empty again after a complete answer.
bool AskOnce(int fd, absl::string_view request, std::string* answer) {
  while (!request.empty()) {
    const ssize_t sent = send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    request.remove_prefix(sent);
  }
  const std::string length_name = "\r\nContent-Length: ";
  char bytes[64 << 10];
  size_t whole = 0;  // The answer's size, or 0 until it is known.
  while (whole == 0 || answer->size() < whole) {
    const ssize_t size = recv(fd, bytes, sizeof(bytes), 0);
    if (size <= 0) return false;
    answer->append(bytes, size);
    const size_t head = answer->find("\r\n\r\n");
    if (whole > 0 || head == std::string::npos) continue;
    const size_t length = answer->find(length_name);
    if (length == std::string::npos) return false;
    const size_t digits = length + length_name.size();
    size_t body;
    if (!absl::SimpleAtoi(
            answer->substr(digits, answer->find('\r', digits) - digits),
            &body)) {
      return false;
    }
    whole = head + 4 + body;
  }
  const bool good = absl::StartsWith(*answer, "HTTP/1.1 200 ");
  answer->clear();
  return good;
}

}  // namespace

Rate LoadOfCalls(const ServerChild& server, const std::string& method,
                 const std::string& message, absl::Duration time,
                 grpc::StatusCode code) {
  return Calls(server.address(), method, message, code).Run(server, time);
}

Rate LoadOfHttp(const ServerChild& server, const std::string& request,
                absl::Duration time) {
  std::atomic<int64_t> good{0}, other{0};
  std::atomic<bool> stop{false};
  const Meter meter(server);
  std::vector<std::thread> threads;
  for (int i = 0; i < kRequestsInFlight; ++i) {
    threads.emplace_back([&] {
      const int fd = Connect(server.http_port());
      std::string answer;
      while (!stop) {
        const bool answered = AskOnce(fd, request, &answer);
        ++(answered ? good : other);
        if (!answered) break;
      }
      close(fd);
    });
  }
  absl::SleepFor(time);
  const Rate rate = meter.Read(good, other);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return rate;
}

}  // namespace sfmamba
