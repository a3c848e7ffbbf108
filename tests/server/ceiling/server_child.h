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

// Called once, when the ports accept connections.
using Listening = std::function<void(const Ports&)>;

// Runs a server in a separate process. The destructor kills the process. All
// processes must be started before gRPC is used.
class ServerChild {
 public:
  // Waits until the server's ports accept connections. `serve` must never
  // return.
  explicit ServerChild(const std::function<void(const Listening&)>& serve);
  ~ServerChild();

  pid_t pid() const { return pid_; }
  // Returns the address of the gRPC port.
  std::string address() const;
  int http_port() const { return ports_.http; }
  // Returns the CPU time that the server's process has used.
  absl::Duration ProcessorTime() const;

 private:
  pid_t pid_;
  Ports ports_;
};

// Selects some of the CPUs that a thread may use.
enum class Processors {
  kAll,
  // Half of the CPUs, but at least one CPU.
  kFirstHalf,
  kRest,
};

// Restricts the calling thread to some of the CPUs that it may use. The
// restriction also applies to threads that the calling thread starts later.
void RunOn(Processors processors);

// Returns the CPU time that this process has used.
absl::Duration OwnProcessorTime();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_SERVER_CHILD_H_
