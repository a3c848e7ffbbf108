#include "tests/e2e/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/rpc/vision_client.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "server/settings/sha256.h"
#include "tests/testing/patience.h"
#include "tests/testing/weights.h"

namespace sfmamba {
namespace {

constexpr char kTinyConfig[] = R"(
backbone {
  variant: "custom"
  dim: 16
  in_dim: 8
  depths: [1, 1, 2, 2]
  num_heads: [1, 1, 2, 4]
  windows: [4, 2]
}
num_classes: 5
input { size: 64 }
)";

// The common beginning of the detector's and the segmenter's configuration.
constexpr char kDenseConfig[] = R"(
num_classes: 5
backbone {
  variant: "custom"
  dim: 16
  in_dim: 8
  depths: [1, 1, 2, 2]
  num_heads: [1, 1, 2, 4]
  windows: [4, 2]
}
input { short_side: 64 long_side: 96 }
)";

// Returns the configuration of WriteTinyModel(), for which weights are made.
model::ModelConfig TinyModel() {
  model::ModelConfig config = *model::VariantConfig("custom");
  config.backbone.dim = 16;
  config.backbone.in_dim = 8;
  config.backbone.depths = {1, 1, 2, 2};
  config.backbone.num_heads = {1, 1, 2, 4};
  config.backbone.windows = {4, 2};
  config.num_classes = 5;
  config.image_size = 64;
  return config;
}

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << std::endl;
  std::abort();
}

// Returns the number after "key": in a line of the log, or 0 if there is none.
int NumberAfter(absl::string_view log, absl::string_view key) {
  const std::string quoted = absl::StrCat("\"", key, "\":");
  const size_t begin = log.find(quoted);
  if (begin == absl::string_view::npos) return 0;
  log.remove_prefix(begin + quoted.size());
  int number = 0;
  (void)absl::SimpleAtoi(log.substr(0, log.find_first_of(",}")), &number);
  return number;
}

}  // namespace

std::string WriteTinyModel(const std::string& batching) {
  std::string repository = testing::TempDir() + "/repository.XXXXXX";
  if (mkdtemp(repository.data()) == nullptr) Die("cannot make " + repository);
  const std::string folder = repository + "/tiny/1/";
  std::filesystem::create_directories(folder);
  const std::string weights = folder + "model.safetensors";
  const absl::Status written =
      WriteWeights(weights, DeterministicWeights(TinyModel()));
  if (!written.ok()) Die(written.ToString());
  std::ofstream(folder + "labels.txt") << "bed\nbottle\nbowl\nchair\ncup\n";
  std::ofstream(folder + "config.textproto")
      << kTinyConfig << "batching { " << batching
      << " }\nweights { size_bytes: " << std::filesystem::file_size(weights)
      << " sha256: \"" << *server::FilesSha256({weights}) << "\" }\n";
  return repository;
}

void AddRandomDenseModels(const std::string& repository) {
  for (const auto& [name, config] :
       {std::pair{"/finder/1",
                  "task: DETECTION detector { channels: 16 fc_width: 32 }"},
        {"/painter/1", "task: SEGMENTATION segmenter { channels: 16 }"}}) {
    std::filesystem::create_directories(repository + name);
    std::ofstream(repository + name + "/config.textproto")
        << config << kDenseConfig;
  }
}

ServerProcess::ServerProcess(const std::vector<std::string>& flags,
                             const std::string& binary, absl::string_view log) {
  std::vector<std::string> arguments = {binary, "--host=127.0.0.1", "--port=0",
                                        "--http_port=0", "--metrics_port=0"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) Die("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDERR_FILENO);
  if (posix_spawn(&pid_, binary.c_str(), &actions, nullptr, argv.data(),
                  environ) != 0) {
    Die("cannot start " + binary);
  }
  posix_spawn_file_actions_destroy(&actions);
  close(pipe[1]);
  running_ = true;
  reader_ = std::thread([this, pipe] { Read(pipe[0]); });
  if (!log.empty()) {
    WaitForLog(log);
    return;
  }
  const std::string kListening = "\"msg\":\"listening\"";
  if (WaitForLog(kListening)) {
    const std::string lines = output();
    const absl::string_view line =
        absl::string_view(lines).substr(lines.find(kListening));
    port_ = NumberAfter(line, "port");
    http_port_ = NumberAfter(line, "http_port");
    metrics_port_ = NumberAfter(line, "metrics_port");
  }
}

ServerProcess::~ServerProcess() {
  if (running_) {
    Signal(SIGKILL);
    Wait();
  }
  reader_.join();
}

std::string ServerProcess::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

bool ServerProcess::WaitUntilServing() {
  client::VisionClient client(address());
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (port_ != 0 && absl::Now() < deadline) {
    const auto health =
        client.CheckHealth("sfmamba.v1.VisionService", absl::Seconds(1));
    if (health.ok() &&
        *health == grpc::health::v1::HealthCheckResponse::SERVING) {
      return true;
    }
    absl::MutexLock lock(&mu_);
    if (mu_.AwaitWithTimeout(absl::Condition(&ended_),
                             absl::Milliseconds(20))) {
      return false;
    }
  }
  return false;
}

bool ServerProcess::WaitForLog(absl::string_view text) {
  const auto decided = [this, text]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    // Waits for the end of the line, so that the caller can also read what
    // follows `text` on it.
    const size_t found = output_.find(text.data(), 0, text.size());
    return ended_ || (found != std::string::npos &&
                      output_.find('\n', found) != std::string::npos);
  };
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&decided), kTestPatience);
  return absl::StrContains(output_, text);
}

void ServerProcess::Signal(int signal) { kill(pid_, signal); }

int ServerProcess::Wait() {
  TimeLimit limit("the end of the server", kTestPatience);
  int status = 0;
  waitpid(pid_, &status, 0);
  running_ = false;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int64_t StatusBytes(pid_t pid, absl::string_view key) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; status >> word;) {
    int64_t kibibytes;
    if (word == key && status >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

std::string ServerProcess::output() const {
  absl::MutexLock lock(&mu_);
  return output_;
}

void ServerProcess::Read(int pipe) {
  constexpr size_t kKept = 1 << 20;
  char buffer[4096];
  for (ssize_t size; (size = read(pipe, buffer, sizeof buffer)) > 0;) {
    absl::MutexLock lock(&mu_);
    if (output_.size() < kKept) output_.append(buffer, size);
  }
  close(pipe);
  absl::MutexLock lock(&mu_);
  ended_ = true;
}

}  // namespace sfmamba
