#ifndef SFMAMBA_TESTS_E2E_ENVOY_PROCESS_H_
#define SFMAMBA_TESTS_E2E_ENVOY_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "tests/e2e/server_process.h"
#include "tests/testing/certificates.h"

namespace sfmamba {

// Runs Envoy with deploy/envoy/envoy.yaml in front of one server, on free local
// ports. Ends the test process if Envoy does not start. Thread-compatible.
class EnvoyProcess {
 public:
  // Returns true if deploy/setup.sh has installed Envoy.
  static bool IsInstalled();

  // Returns once Envoy considers the server healthy. On the port tls_port(),
  // Envoy identifies itself with `certificate`.
  EnvoyProcess(const ServerProcess& server, const Certificate& certificate);
  ~EnvoyProcess();
  EnvoyProcess(const EnvoyProcess&) = delete;
  EnvoyProcess& operator=(const EnvoyProcess&) = delete;

  int port() const { return port_; }  // Serves gRPC without TLS, and HTTP.
  int tls_port() const { return tls_port_; }
  std::string address() const;  // Returns "127.0.0.1:port".

  bool IsRunning() const;
  int64_t peak_resident_bytes() const { return StatusBytes(pid_, "VmHWM:"); }

 private:
  // Returns the value of Envoy's gauge or counter `name`.
  int64_t Stat(const std::string& name) const;

  pid_t pid_ = 0;
  int admin_port_ = 0;
  int port_ = 0;
  int tls_port_ = 0;
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_ENVOY_PROCESS_H_
