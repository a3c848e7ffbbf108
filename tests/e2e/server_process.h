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

// A line of /proc/<pid>/status that states kibibytes, such as "VmRSS:". In
// bytes; 0 if there is none.
int64_t StatusBytes(pid_t pid, absl::string_view key);

// A model repository in a new folder below the test's: the model "tiny" of five
// classes and 64 x 64 pixels, with deterministic weights. `batching` is the
// text of the config's message of that name. Dies if it cannot be written.
std::string WriteTinyModel(const std::string& batching = "");

// Adds a detector, "finder", and a segmenter, "painter", of five classes and
// inputs of up to 64 x 96 pixels, without weights: for --random_init.
void AddRandomDenseModels(const std::string& repository);

// A real server, in a process of its own, on free ports of 127.0.0.1 unless
// `flags` say otherwise. The constructor waits until its models have loaded and
// it listens, or until it has ended. The destructor kills it.
// Thread-compatible.
class ServerProcess {
 public:
  // `binary` is a runfile. The constructor waits for a line with `log` instead,
  // if it is not empty. Then there are no ports.
  explicit ServerProcess(const std::vector<std::string>& flags,
                         const std::string& binary = "server/sfmamba_server",
                         absl::string_view log = "");
  ~ServerProcess();

  // 0 if it never listened.
  int port() const { return port_; }
  int http_port() const { return http_port_; }
  int metrics_port() const { return metrics_port_; }
  std::string address() const;  // "127.0.0.1:port"

  // False if the server ends, or is not healthy for a minute.
  bool WaitUntilServing();
  // Blocks until the output contains `text`; false if it ends without.
  bool WaitForLog(absl::string_view text) ABSL_LOCKS_EXCLUDED(mu_);

  void Signal(int signal);
  // Waits for the end; the exit code, or 128 + the signal that ended it.
  int Wait();

  // The memory that it holds now, and the most it has held, in bytes of RAM;
  // 0 once it has ended.
  int64_t resident_bytes() const { return StatusBytes(pid_, "VmRSS:"); }
  int64_t peak_resident_bytes() const { return StatusBytes(pid_, "VmHWM:"); }

  // What it has written so far, the first MiB.
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
  bool ended_ ABSL_GUARDED_BY(mu_) = false;  // No more output will come.
  std::thread reader_;
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SERVER_PROCESS_H_
