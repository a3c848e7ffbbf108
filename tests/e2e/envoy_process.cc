#include "tests/e2e/envoy_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << std::endl;
  std::abort();
}

// Returns the program's path, or "" if it is not installed.
std::string Program() {
  for (const absl::string_view folder :
       absl::StrSplit(std::getenv("PATH"), ':')) {
    std::string path = absl::StrCat(folder, "/envoy");
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Port(int port) { return absl::StrCat("port_value: ", port, "}"); }

// Writes the configuration to `folder`, with the server's ports and free ports
// for Envoy.
void WriteConfiguration(const std::string& folder, const ServerProcess& server,
                        const Certificate& certificate) {
  std::filesystem::create_directories(folder + "/certificate");
  std::ofstream(folder + "/certificate/tls.crt") << certificate.pem;
  std::ofstream(folder + "/certificate/tls.key") << certificate.key;
  const std::string own_folder = absl::StrCat(folder, "/");
  for (const char* file : {"envoy.yaml", "tls.yaml"}) {
    const std::string text = ReadFile(absl::StrCat("deploy/envoy/", file));
    if (text.empty()) Die(absl::StrCat("cannot read ", file));
    std::ofstream(own_folder + file) << absl::StrReplaceAll(
        text, {{"address: server,", "address: 127.0.0.1,"},
               {"0.0.0.0", "127.0.0.1"},
               {"/etc/envoy/", own_folder},
               {Port(8001), Port(server.port())},
               {Port(8000), Port(server.http_port())},
               {Port(8080), Port(0)},
               {Port(8443), Port(0)},
               {Port(9901), Port(0)},
               {Port(9902), Port(0)}});
  }
}

// Returns the body of a page of Envoy's admin port, or "" on failure. HttpGet()
// cannot read it, because HttpGet() uses HTTP/1.0, which this port refuses.
std::string AdminPage(int port, const std::string& path) {
  const httplib::Result page = httplib::Client("127.0.0.1", port).Get(path);
  return page && page->status == 200 ? page->body : "";
}

// Returns the port of the listener `name`, or 0 if there is none. `listeners`
// is a page of Envoy's admin port. Its lines have the form
// "name::address:port".
int PortOf(const std::string& listeners, const std::string& name) {
  for (const absl::string_view line : absl::StrSplit(listeners, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, ':');
    int port = 0;
    if (parts.front() == name && absl::SimpleAtoi(parts.back(), &port)) {
      return port;
    }
  }
  return 0;
}

}  // namespace

bool EnvoyProcess::IsInstalled() { return !Program().empty(); }

EnvoyProcess::EnvoyProcess(const ServerProcess& server,
                           const Certificate& certificate) {
  std::string folder = testing::TempDir() + "/envoy.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) Die("cannot make " + folder);
  WriteConfiguration(folder, server, certificate);

  std::vector<std::string> arguments = {
      Program(),
      "--config-path",
      folder + "/envoy.yaml",
      "--admin-address-path",
      folder + "/admin",
      "--concurrency",
      "1",
      "--use-dynamic-base-id",
      "--log-level",
      "warning",
  };
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO,
                                   (folder + "/access.log").c_str(),
                                   O_WRONLY | O_CREAT, 0644);
  if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) !=
      0) {
    Die("cannot start " + arguments[0]);
  }
  posix_spawn_file_actions_destroy(&actions);

  WaitUntil(
      [&] {
        const std::vector<std::string> parts =
            absl::StrSplit(ReadFile(folder + "/admin"), ':');
        return absl::SimpleAtoi(parts.back(), &admin_port_) &&
               Stat("listener_manager.workers_started") == 1 &&
               Stat("cluster.grpc.membership_healthy") == 1 &&
               Stat("cluster.streams.membership_healthy") == 1 &&
               Stat("cluster.http.membership_healthy") == 1;
      },
      "Envoy");
  const std::string listeners = AdminPage(admin_port_, "/listeners");
  port_ = PortOf(listeners, "cleartext");
  tls_port_ = PortOf(listeners, "tls");
}

EnvoyProcess::~EnvoyProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string EnvoyProcess::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

bool EnvoyProcess::IsRunning() const {
  siginfo_t info = {};
  return waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

int64_t EnvoyProcess::Stat(const std::string& name) const {
  const std::string page =
      AdminPage(admin_port_, absl::StrCat("/stats?filter=^", name, "$"));
  const std::vector<std::string> parts = absl::StrSplit(page, ": ");
  int64_t value = 0;
  if (parts.size() == 2) (void)absl::SimpleAtoi(parts[1], &value);
  return value;
}

}  // namespace sfmamba
