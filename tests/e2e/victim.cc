#include "tests/e2e/victim.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "grpcpp/grpcpp.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

// A retry policy like the one in docs/operations.md. It is needed because a
// server that is short of memory closes idle connections. A call that starts on
// such a connection fails with UNAVAILABLE. gRPC then connects again, and the
// retry succeeds.
constexpr char kRetries[] = R"({"methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 3, "initialBackoff": "0.05s", "maxBackoff": "1s",
    "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]})";

// Returns a channel that shares its connection with no other channel.
std::shared_ptr<grpc::Channel> OwnChannel(const std::string& address,
                                          const std::string& authority) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetServiceConfigJSON(kRetries);
  return grpc::CreateCustomChannel(
      address,
      authority.empty() ? grpc::InsecureChannelCredentials()
                        : grpc::SslCredentials({authority, "", ""}),
      arguments);
}

}  // namespace

struct Victim::Call {
  grpc::ClientContext context;
  v1::ClassifyRequest request;
  v1::ClassifyResponse response;
};

Victim::Victim(const std::string& address, absl::Duration interval,
               const std::string& model, const std::string& authority,
               absl::Duration deadline)
    : Victim(OwnChannel(address, authority), interval, "", model, deadline) {}

Victim::Victim(const std::shared_ptr<grpc::Channel>& channel,
               absl::Duration interval, const std::string& token,
               const std::string& model, absl::Duration deadline)
    : stub_(v1::VisionService::NewStub(channel)),
      model_(model),
      deadline_(deadline),
      token_(token),
      thread_([this, interval] { Run(interval); }) {}

Victim::~Victim() {
  if (!stop_.HasBeenNotified()) Stop();
}

Victim::Count Victim::Stop() {
  stop_.Notify();
  Join(thread_, "the victim", kTestPatience);
  TimeLimit limit("the victim's answers", kTestPatience);
  const auto none_open = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return open_ == 0;
  };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&none_open));
  count_.mean /= std::max(1, count_.answered);
  return count_;
}

void Victim::Run(absl::Duration interval) {
  absl::Time next = absl::Now();
  do {
    Send();
    next += interval;
  } while (!stop_.WaitForNotificationWithDeadline(next));
}

void Victim::Send() {
  auto* call = new Call;
  call->context.set_deadline(std::chrono::system_clock::now() +
                             absl::ToChronoMilliseconds(deadline_));
  if (!token_.empty()) {
    call->context.AddMetadata("authorization", "Bearer " + token_);
  }
  call->request.set_model(model_);
  v1::PixelBuffer& pixels = *call->request.add_images()->mutable_pixels();
  pixels.set_width(80);
  pixels.set_height(72);
  pixels.set_format(v1::PixelBuffer::GRAY8);
  pixels.set_data(std::string(80 * 72, 'a'));
  {
    absl::MutexLock lock(&mu_);
    ++open_;
    ++count_.sent;
  }
  const absl::Time start = base::SteadyNow();
  stub_->async()->Classify(&call->context, &call->request, &call->response,
                           [this, call, start](const grpc::Status& status) {
                             delete call;
                             Ended(status, base::SteadyNow() - start);
                           });
}

void Victim::Ended(const grpc::Status& status, absl::Duration took) {
  absl::MutexLock lock(&mu_);
  --open_;
  if (status.ok()) {
    ++count_.answered;
    count_.slowest = std::max(count_.slowest, took);
    count_.mean += took;  // This is a sum until Stop() divides it.
  } else if (count_.first_error.empty()) {
    count_.first_error =
        absl::StrCat(status.error_code(), ": ", status.error_message());
  }
}

}  // namespace sfmamba
