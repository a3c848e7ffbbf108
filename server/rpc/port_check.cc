#include "server/rpc/port_check.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace sfmamba::rpc {

absl::Status CallPort(const std::string& address, absl::Duration limit) {
  grpc::ChannelArguments arguments;
  // A connection of its own, straight to the port.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  const auto stub = grpc::health::v1::Health::NewStub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
  const grpc::health::v1::HealthCheckRequest request;
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status = stub->Check(&context, request, &response);
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
      status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat(address, " does not answer: ", status.error_message()));
}

void PortCheck::Run() {
  const absl::Status status = options_.call();
  failed_ = status.ok() ? 0 : failed_ + 1;
  if (failed_ == options_.failures) options_.deaf(status);
}

}  // namespace sfmamba::rpc
