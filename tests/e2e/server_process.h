#ifndef SFMAMBA_TESTS_E2E_SERVER_PROCESS_H_
#define SFMAMBA_TESTS_E2E_SERVER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba {

// Returns a value from /proc/<pid>/status in bytes. `key` is the beginning of
// its line, such as "VmRSS:". Returns 0 if there is no such line.
int64_t StatusBytes(pid_t pid, absl::string_view key);

// Writes a model repository to a new folder below the test's folder. Its model
// "tiny" has five classes, inputs of 64 x 64 pixels and deterministic weights.
// `batching` is the text of the configuration's message `batching`. Ends the
// process if writing fails.
std::string WriteTinyModel(const std::string& batching = "");

// Adds a detector "finder" and a segmenter "painter" to the repository. They
// have five classes and inputs of up to 64 x 96 pixels. They have no weights,
// so the server must be started with --random_init.
void AddRandomDenseModels(const std::string& repository);

// Runs a real server in a separate process. The server listens on free ports of
// 127.0.0.1, unless `flags` set another host or other ports. The constructor
// waits until the models are loaded and the server listens, or until the server
// has ended. The destructor kills the server. Thread-compatible.
class ServerProcess {
 public:
  // `binary` is the path of a runfile. If `log` is not empty, the constructor
  // only waits until the server logs a line that contains `log`. The server's
  // ports are then unknown.
  explicit ServerProcess(const std::vector<std::string>& flags,
                         const std::string& binary = "server/sfmamba_server",
                         absl::string_view log = "");
  ~ServerProcess();

  // Returns the port of gRPC, or 0 if the server never listened.
  int port() const { return port_; }
  int http_port() const { return http_port_; }
  int metrics_port() const { return metrics_port_; }
  std::string address() const;  // Returns "127.0.0.1:port".

  // Waits until the server is healthy. Returns false if the server ends first,
  // or if this takes more than a minute.
  bool WaitUntilServing();
  // Blocks until the output contains `text`. Returns false if the output ends
  // before.
  bool WaitForLog(absl::string_view text) ABSL_LOCKS_EXCLUDED(mu_);

  void Signal(int signal);
  // Waits until the server has ended. Returns its exit code, or 128 plus the
  // number of the signal that ended it.
  int Wait();

  // Return the current and the maximum resident memory in bytes, or 0 if the
  // server has ended.
  int64_t resident_bytes() const { return StatusBytes(pid_, "VmRSS:"); }
  int64_t peak_resident_bytes() const { return StatusBytes(pid_, "VmHWM:"); }

  // Returns what the server has printed so far, but at most the first MiB.
  std::string output() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Read(int pipe);  // The body of reader_.

  pid_t pid_ = 0;
  bool running_ = false;
  int port_ = 0;
  int http_port_ = 0;
  int metrics_port_ = 0;

  mutable absl::Mutex mu_;
  std::string output_ ABSL_GUARDED_BY(mu_);
  // Set when no more output will come.
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::thread reader_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SERVER_PROCESS_H_
