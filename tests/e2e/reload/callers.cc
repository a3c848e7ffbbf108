#include "tests/e2e/reload/callers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/client_context.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int kSide = 64;  // The input size of the model "tiny".

v1::ClassifyRequest Request(const std::string& model) {
  v1::ClassifyRequest request;
  request.set_model(model);
  v1::PixelBuffer* pixels = request.add_images()->mutable_pixels();
  pixels->set_width(kSide);
  pixels->set_height(kSide);
  pixels->set_format(v1::PixelBuffer::RGB8);
  pixels->set_data(std::string(kSide * kSide * 3, '\x40'));
  return request;
}

// Returns the reason in an error's ErrorInfo. If there is none, returns the
// status code.
std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  details.ParseFromString(status.error_details());
  for (const google::protobuf::Any& any : details.details()) {
    google::rpc::ErrorInfo info;
    if (any.UnpackTo(&info)) return info.reason();
  }
  return absl::StrCat("code ", status.error_code());
}

// Returns the beginning of a version's labels: "v4-" for
// "models/tiny/versions/4".
std::string LabelsOf(const std::string& version) {
  return absl::StrCat("v", version.substr(version.rfind('/') + 1), "-");
}

int Sum(const std::map<std::string, int>& counts) {
  int sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

}  // namespace

int Callers::Outcomes::answered() const { return Sum(answers); }
int Callers::Outcomes::failed() const { return Sum(errors); }

absl::Duration Callers::Outcomes::Percentile(double percent) const {
  if (latencies.empty()) return absl::ZeroDuration();
  std::vector<absl::Duration> sorted = latencies;
  std::sort(sorted.begin(), sorted.end());
  const size_t rank = std::ceil(sorted.size() * percent / 100);
  return sorted[std::min(std::max<size_t>(rank, 1), sorted.size()) - 1];
}

Callers::Callers(const std::string& model, int clients,
                 const std::function<std::shared_ptr<grpc::Channel>()>& channel)
    : model_(model) {
  for (int i = 0; i < clients; ++i) {
    clients_.emplace_back([this, channel = channel()] { Run(channel); });
  }
}

Callers::~Callers() { Stop(); }

void Callers::Stop() {
  stop_.store(true);
  for (std::thread& client : clients_) {
    if (client.joinable()) client.join();
  }
}

void Callers::Run(std::shared_ptr<grpc::Channel> channel) {
  const auto stub = v1::VisionService::NewStub(std::move(channel));
  const v1::ClassifyRequest request = Request(model_);
  while (!stop_.load()) {
    grpc::ClientContext context;
    const absl::Time start = absl::Now();
    context.set_deadline(absl::ToChronoTime(start + absl::Seconds(10)));
    v1::ClassifyResponse response;
    const grpc::Status status = stub->Classify(&context, request, &response);
    Ended(status, response, absl::Now() - start);
    // Pauses after a refusal. Refusals are fast, so the client would otherwise
    // send far more requests.
    if (!status.ok()) absl::SleepFor(absl::Milliseconds(5));
  }
}

void Callers::Ended(const grpc::Status& status,
                    const v1::ClassifyResponse& response,
                    absl::Duration latency) {
  std::string error;
  if (!status.ok()) {
    error = ReasonOf(status);
  } else if (response.results_size() != 1 ||
             response.results(0).categories_size() == 0 ||
             !absl::StartsWith(response.results(0).categories(0).label(),
                               LabelsOf(response.model()))) {
    error = "WRONG_VERSION";
  }
  absl::MutexLock lock(&mu_);
  ++ended_;
  if (error.empty()) {
    ++outcomes_.answers[response.model()];
    outcomes_.latencies.push_back(latency);
    return;
  }
  ++outcomes_.errors[error];
  if (outcomes_.first_error.empty()) {
    outcomes_.first_error = absl::StrCat(error, ": ", status.error_message(),
                                         response.ShortDebugString());
  }
}

Callers::Outcomes Callers::Take() {
  absl::MutexLock lock(&mu_);
  return std::exchange(outcomes_, Outcomes());
}

Callers::Outcomes Callers::TakeNext(int count) {
  absl::MutexLock lock(&mu_);
  ended_ = 0;
  const auto enough = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ended_ >= count;
  };
  TimeLimit limit("answers to the crowd", kTestPatience);
  mu_.Await(absl::Condition(&enough));
  return std::exchange(outcomes_, Outcomes());
}

}  // namespace sfmamba
