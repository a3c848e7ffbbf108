#include "client/rpc/vision_client.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "client/rpc/rpc_status.h"
#include "grpcpp/support/channel_arguments.h"

namespace sfmamba::client {
namespace {

constexpr int kMaxMessageBytes = 64 << 20;  // This is the server's limit.

// Each failed call takes one of 1000 tokens, and each successful call gives one
// back. Calls are not retried while 500 or fewer tokens are left, so retries
// stop if calls fail more often than they succeed. There are so many tokens
// because a killed server fails all calls in flight at once. CANCELLED is
// retried too, because a stopping server returns it for calls that arrive after
// its GOAWAY.
constexpr char kRetryPolicy[] = R"(
  "loadBalancingConfig": [{"round_robin": {}}],
  "retryThrottling": {"maxTokens": 1000, "tokenRatio": 1},
  "methodConfig": [{
    "name": [{"service": "sfmamba.v1.VisionService"}],
    "retryPolicy": {
      "maxAttempts": $0,
      "initialBackoff": "0.05s",
      "maxBackoff": "1s",
      "backoffMultiplier": 4,
      "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"$1]
    }
  }])";

constexpr char kHealthCheck[] = R"(,
  "healthCheckConfig": {"serviceName": "sfmamba.v1.VisionService"})";

// gRPC's default is two minutes, during which a client would not notice that a
// server is back.
constexpr int kMaxReconnectBackoffMilliseconds = 1000;

// During a call, the client drops the connection if the server does not answer
// a ping within four seconds. Without pings, the client would not notice a hung
// server, because the kernel of the server's machine keeps the connection open.
constexpr int kKeepaliveTimeMilliseconds = 2000;
constexpr int kKeepaliveTimeoutMilliseconds = 2000;

// gRPC's default is 30 seconds, during which a client would not notice new
// servers.
constexpr int kMinDnsIntervalMilliseconds = 5000;

std::string RetryPolicy(const VisionClientOptions& options) {
  return options.retry_exhausted
             ? absl::Substitute(kRetryPolicy, 5, R"(, "RESOURCE_EXHAUSTED")")
             : absl::Substitute(kRetryPolicy, 3, "");
}

std::shared_ptr<grpc::Channel> Channel(absl::string_view server,
                                       absl::string_view health_check,
                                       const VisionClientOptions& options) {
  grpc::ChannelArguments arguments;
  if (!options.share_connections) {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  }
  if (!options.retry) arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS,
                   kMaxReconnectBackoffMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   kKeepaliveTimeoutMilliseconds);
  // 0 means that the number of pings without data has no limit.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS,
                   kMinDnsIntervalMilliseconds);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // gRPC would never retry a request that exceeds this buffer.
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, kMaxMessageBytes);
  arguments.SetServiceConfigJSON(
      absl::StrCat("{", RetryPolicy(options), health_check, "}"));
  return MakeChannel(server, options.access, arguments);
}

void SetTimeout(absl::Duration timeout, grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

// Makes a unary call of `stub` and waits for its result.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Call(const Reach& reach, Stub& stub,
                              grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                           const Request&,
                                                           Response*),
                              const Request& request, absl::Duration timeout,
                              bool wait_for_ready = false) {
  grpc::ClientContext context;
  context.set_wait_for_ready(wait_for_ready);
  SetTimeout(timeout, &context);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return Explain(reach, FromGrpcStatus(status));
  return response;
}

}  // namespace

VisionClient::VisionClient(absl::string_view server,
                           const VisionClientOptions& options)
    : reach_{std::string(server), options.access.tls,
             !options.access.token.empty()},
      traceparent_(options.traceparent),
      retry_(options.retry),
      predict_channel_(Channel(server, kHealthCheck, options)),
      predict_(v1::VisionService::NewStub(predict_channel_)) {
  VisionClientOptions control;
  control.access = options.access;
  const std::shared_ptr<grpc::Channel> channel = Channel(server, "", control);
  control_ = v1::VisionService::NewStub(channel);
  admin_ = v1::AdminService::NewStub(channel);
  health_ = grpc::health::v1::Health::NewStub(channel);
}

VisionClient::~VisionClient() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(
      +[](int* in_flight) { return *in_flight == 0; }, &in_flight_));
}

template <typename Request, typename Response>
CallHandle VisionClient::Start(AsyncMethod<Request, Response> method,
                               const Request& request, absl::Duration timeout,
                               Done<Response> done) {
  struct Call {
    std::shared_ptr<grpc::ClientContext> context;
    Response response;
    Done<Response> done;
  };
  auto* call = new Call{std::make_shared<grpc::ClientContext>(), Response(),
                        std::move(done)};
  SetTimeout(timeout, call->context.get());
  call->context->set_wait_for_ready(WaitsForServer());
  if (!traceparent_.empty()) {
    call->context->AddMetadata("traceparent", traceparent_);
  }
  {
    absl::MutexLock lock(&mu_);
    ++in_flight_;
  }
  CallHandle handle(call->context);
  // gRPC serializes `request` before this returns.
  (Predictor().async()->*method)(
      call->context.get(), &request, &call->response,
      [this, call](grpc::Status status) {
        if (status.ok()) {
          has_answered_ = true;
          call->done(std::move(call->response));
        } else {
          call->done(Explain(FromGrpcStatus(status)));
        }
        // `call` owns the context, which holds a reference to the channel.
        // gRPC's own threads must not destroy the channel. VisionClient's
        // destructor destroys it after in_flight_ has become 0. So `call` is
        // deleted before in_flight_ is decremented.
        delete call;
        absl::MutexLock lock(&mu_);
        --in_flight_;
      });
  return handle;
}

template <typename Request, typename Response>
absl::StatusOr<Response> VisionClient::Predict(Method<Request, Response> method,
                                               const Request& request,
                                               absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  AwaitHealth(timeout);
  absl::StatusOr<Response> response =
      Call(reach_, Predictor(), method, request, deadline - absl::Now(),
           WaitsForServer());
  if (response.ok()) has_answered_ = true;
  return response;
}

absl::StatusOr<v1::ClassifyResponse> VisionClient::Classify(
    const v1::ClassifyRequest& request, absl::Duration timeout) {
  return Predict(&v1::VisionService::Stub::Classify, request, timeout);
}

absl::StatusOr<v1::DetectResponse> VisionClient::Detect(
    const v1::DetectRequest& request, absl::Duration timeout) {
  return Predict(&v1::VisionService::Stub::Detect, request, timeout);
}

absl::StatusOr<v1::SegmentResponse> VisionClient::Segment(
    const v1::SegmentRequest& request, absl::Duration timeout) {
  return Predict(&v1::VisionService::Stub::Segment, request, timeout);
}

CallHandle VisionClient::Classify(const v1::ClassifyRequest& request,
                                  absl::Duration timeout,
                                  Done<v1::ClassifyResponse> done) {
  return Start<v1::ClassifyRequest, v1::ClassifyResponse>(
      &AsyncStub::Classify, request, timeout, std::move(done));
}

CallHandle VisionClient::Detect(const v1::DetectRequest& request,
                                absl::Duration timeout,
                                Done<v1::DetectResponse> done) {
  return Start<v1::DetectRequest, v1::DetectResponse>(
      &AsyncStub::Detect, request, timeout, std::move(done));
}

CallHandle VisionClient::Segment(const v1::SegmentRequest& request,
                                 absl::Duration timeout,
                                 Done<v1::SegmentResponse> done) {
  return Start<v1::SegmentRequest, v1::SegmentResponse>(
      &AsyncStub::Segment, request, timeout, std::move(done));
}

std::unique_ptr<PredictStream> VisionClient::OpenStream(
    const v1::StreamConfig& config) {
  return std::make_unique<PredictStream>(Predictor(), config);
}

absl::Status VisionClient::Connect(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  AwaitHealth(timeout);
  const grpc_connectivity_state state = predict_channel_->GetState(false);
  if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
  if (state != GRPC_CHANNEL_TRANSIENT_FAILURE) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the server at ", reach_.server, " has not been reached within ",
        absl::FormatDuration(timeout)));
  }
  // CheckHealth() returns the reason if the server cannot be reached.
  const absl::Status reached = CheckHealth("", deadline - absl::Now()).status();
  if (!reached.ok()) return reached;
  return absl::UnavailableError(
      absl::StrCat("the server at ", reach_.server,
                   " does not serve: it loads, drains or has failed"));
}

void VisionClient::AwaitHealth(absl::Duration timeout) {
  const auto deadline = absl::ToChronoTime(absl::Now() + timeout);
  grpc_connectivity_state state = predict_channel_->GetState(true);
  while (state != GRPC_CHANNEL_READY &&
         state != GRPC_CHANNEL_TRANSIENT_FAILURE &&
         predict_channel_->WaitForStateChange(state, deadline)) {
    state = predict_channel_->GetState(true);
  }
}

v1::VisionService::Stub& VisionClient::Predictor() {
  const bool none_is_healthy =
      predict_channel_->GetState(true) == GRPC_CHANNEL_TRANSIENT_FAILURE;
  return none_is_healthy ? *control_ : *predict_;
}

absl::StatusOr<v1::Model> VisionClient::GetModel(absl::string_view name,
                                                 absl::Duration timeout) {
  v1::GetModelRequest request;
  request.set_name(std::string(name));
  return Call(reach_, *control_, &v1::VisionService::Stub::GetModel, request,
              timeout);
}

absl::StatusOr<std::vector<v1::Model>> VisionClient::ListModels(
    absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  std::vector<v1::Model> models;
  v1::ListModelsRequest request;
  do {
    const absl::StatusOr<v1::ListModelsResponse> page =
        Call(reach_, *control_, &v1::VisionService::Stub::ListModels, request,
             deadline - absl::Now());
    if (!page.ok()) return page.status();
    models.insert(models.end(), page->models().begin(), page->models().end());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return models;
}

absl::StatusOr<v1::BatchProfile> VisionClient::GetBatchProfile(
    absl::string_view name, absl::Duration timeout) {
  v1::GetBatchProfileRequest request;
  request.set_name(std::string(name));
  return Call(reach_, *admin_, &v1::AdminService::Stub::GetBatchProfile,
              request, timeout);
}

absl::StatusOr<v1::LoadModelResponse> VisionClient::LoadModel(
    const v1::LoadModelRequest& request, absl::Duration timeout) {
  return Call(reach_, *admin_, &v1::AdminService::Stub::LoadModel, request,
              timeout);
}

absl::StatusOr<v1::UnloadModelResponse> VisionClient::UnloadModel(
    const v1::UnloadModelRequest& request, absl::Duration timeout) {
  return Call(reach_, *admin_, &v1::AdminService::Stub::UnloadModel, request,
              timeout);
}

absl::StatusOr<v1::SetVersionLabelResponse> VisionClient::SetVersionLabel(
    const v1::SetVersionLabelRequest& request, absl::Duration timeout) {
  return Call(reach_, *admin_, &v1::AdminService::Stub::SetVersionLabel,
              request, timeout);
}

absl::StatusOr<v1::ServerInfo> VisionClient::GetServerInfo(
    absl::Duration timeout) {
  return Call(reach_, *admin_, &v1::AdminService::Stub::GetServerInfo,
              v1::GetServerInfoRequest(), timeout);
}

absl::StatusOr<v1::RuntimeSettings> VisionClient::UpdateRuntimeSettings(
    const v1::UpdateRuntimeSettingsRequest& request, absl::Duration timeout) {
  return Call(reach_, *admin_, &v1::AdminService::Stub::UpdateRuntimeSettings,
              request, timeout);
}

absl::StatusOr<VisionClient::ServingStatus> VisionClient::CheckHealth(
    absl::string_view service, absl::Duration timeout) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(std::string(service));
  const absl::StatusOr<grpc::health::v1::HealthCheckResponse> response =
      Call(reach_, *health_, &grpc::health::v1::Health::Stub::Check, request,
           timeout);
  if (!response.ok()) return response.status();
  return response->status();
}

}  // namespace sfmamba::client
