#include "tests/e2e/soak/soak_run.h"

#include <signal.h>

#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands/inputs.h"

namespace sfmamba {
namespace {

constexpr double kMaxGrowth = 1 << 20;  // In bytes per 10,000 requests.
// With fewer requests, the growth of the server's memory is not checked. It
// cannot be measured exactly enough.
constexpr int kFewRequests = 12500;

}  // namespace

absl::StatusOr<v1::ClassifyResponse> Call(client::VisionClient& client,
                                          const v1::ClassifyRequest& request) {
  return client.Classify(request, kSoakTimeout);
}

absl::StatusOr<v1::DetectResponse> Call(client::VisionClient& client,
                                        const v1::DetectRequest& request) {
  return client.Detect(request, kSoakTimeout);
}

absl::StatusOr<v1::SegmentResponse> Call(client::VisionClient& client,
                                         const v1::SegmentRequest& request) {
  return client.Segment(request, kSoakTimeout);
}

void SoakReport::Complain(const std::string& what) {
  absl::MutexLock lock(&mu_);
  if (++complaints_ <= 20) std::cout << "FAILED " << what << "\n";
}

int SoakReport::complaints() const {
  absl::MutexLock lock(&mu_);
  return complaints_;
}

double SoakReport::SampleMemory(const ServerProcess& server, int done) {
  const double bytes =
      ServerMetric(server.metrics_port(), "process_resident_memory_bytes");
  absl::MutexLock lock(&mu_);
  memory_.push_back({static_cast<double>(done), bytes});
  return bytes;
}

void SoakReport::CheckMemory(int requests) {
  double growth = 0, bytes = 0;
  {
    absl::MutexLock lock(&mu_);
    growth = Growth(memory_);
    bytes = memory_.empty() ? 0 : memory_.back().resident_bytes;
  }
  std::cout << absl::StrFormat(
      "memory: %.1f MiB at the end, growing by %.3f MiB in 10,000 requests\n",
      bytes / (1 << 20), growth / (1 << 20));
  if (!(bytes > 0)) Complain("memory: not measured");
  if (requests < kFewRequests) {
    std::cout << "memory: too few requests to judge\n";
  } else if (!(growth <= kMaxGrowth)) {
    Complain("memory: grows by more than 1 MiB in 10,000 requests");
  }
}

int RunSoak(int argc, char** argv, client::FlagSet* flags,
            const std::function<void(const SoakStand&, SoakReport*)>& soak) {
  // The paths below are relative to the folder of the runfiles. Bazel starts a
  // test in this folder. A program that is started by hand must change to it.
  const std::string runfiles = absl::StrCat(argv[0], ".runfiles/sfmamba");
  if (std::filesystem::exists(runfiles)) {
    std::filesystem::current_path(runfiles);
  }
  int requests = 100000;
  std::string binary = "server/sfmamba_server";
  std::string jpeg_path = "client/samples/render_01.jpg";
  flags->Add("requests", "N", "how many", &requests);
  flags->Add("server", "BINARY", "the server to start", &binary);
  flags->Add("jpeg", "FILE", "a picture to send", &jpeg_path);
  const auto rest = flags->Parse({argv + 1, argv + argc});
  if (!rest.ok() || !rest->empty() || flags->help_requested()) {
    std::cerr << rest.status().message() << "\n" << flags->Help();
    return 2;
  }
  const auto jpeg = client::ReadFile(jpeg_path);
  if (!jpeg.ok()) {
    std::cerr << jpeg.status().message() << "\n";
    return 2;
  }

  const std::string repository = WriteTinyModel();
  AddRandomDenseModels(repository);
  SoakReport report;
  {
    ServerProcess server(
        {absl::StrCat("--model_repository=", repository),
         absl::StrCat("--model=fickle=", repository, "/tiny/1"),
         "--random_init", "--drain_delay=0s"},
        binary);
    if (!server.WaitUntilServing()) {
      std::cout << "FAILED the server does not serve:\n" << server.output();
      return 1;
    }
    soak({server, requests, *jpeg}, &report);
    server.Signal(SIGTERM);
    const int exit_code = server.Wait();
    if (exit_code != 0) {
      report.Complain(absl::StrCat("the server's exit code is ", exit_code));
    }
  }
  std::filesystem::remove_all(repository);
  const bool passed = report.complaints() == 0;
  std::cout << (passed ? "passed" : "failed") << "\n";
  return passed ? 0 : 1;
}

}  // namespace sfmamba
