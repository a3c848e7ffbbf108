#ifndef SFMAMBA_TESTS_SERVER_CEILING_SERVER_CHILD_H_
#define SFMAMBA_TESTS_SERVER_CEILING_SERVER_CHILD_H_

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/time/time.h"

namespace sfmamba {

struct Ports {
  int grpc = 0;
  int http = 0;
};

// To be called once, when the ports take connections.
using Listening = std::function<void(const Ports&)>;

// A server in a process of its own, killed at the end. Processes are made
// before anything of gRPC is.
class ServerChild {
 public:
  // `serve` never returns. Waits until it listens.
  explicit ServerChild(const std::function<void(const Listening&)>& serve);
  ~ServerChild();

  pid_t pid() const { return pid_; }
  std::string address() const;  // gRPC's.
  int http_port() const { return ports_.http; }
  // The processor time that it has used.
  absl::Duration ProcessorTime() const;

 private:
  pid_t pid_;
  Ports ports_;
};

// Which processors a thread, and those that it starts from then on, run on.
enum class Processors {
  kAll,
  kFirstHalf,  // At least one.
  kRest,
};

// Keeps the calling thread to these of the processors that it may use.
void RunOn(Processors processors);

// The processor time that this process has used.
absl::Duration OwnProcessorTime();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_SERVER_CHILD_H_
