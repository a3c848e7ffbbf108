#ifndef SFMAMBA_CLIENT_RPC_VISION_CLIENT_H_
#define SFMAMBA_CLIENT_RPC_VISION_CLIENT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/rpc/predict_stream.h"
#include "client/rpc/reach.h"
#include "client/rpc/server_access.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "sfmamba/v1/admin.grpc.pb.h"
#include "sfmamba/v1/vision.grpc.pb.h"

namespace sfmamba::client {

// A call in flight. Copyable. May outlive the call.
class CallHandle {
 public:
  explicit CallHandle(std::shared_ptr<grpc::ClientContext> context)
      : context_(std::move(context)) {}

  // Asks for an early end. The call's callback then receives CANCELLED, unless
  // the call has already ended. Thread-safe.
  void Cancel() const { context_->TryCancel(); }

 private:
  std::shared_ptr<grpc::ClientContext> context_;
};

struct VisionClientOptions {
  // Whether the client may share connections with other clients of this
  // process.
  bool share_connections = true;
  // Retries predictions that end with UNAVAILABLE. If the server has answered
  // before and cannot be reached now, predictions also wait for it.
  bool retry = true;
  // Also retries predictions that end with RESOURCE_EXHAUSTED, up to four
  // times, after the delay that the server asks for.
  bool retry_exhausted = false;
  ServerAccess access;
  // The W3C header traceparent that predictions with a callback send. If empty,
  // none is sent. Blocking calls and streams never send it.
  std::string traceparent;
};

// Calls a vision server, or several servers that share one name. Predictions go
// round-robin to the name's addresses that report themselves healthy. If no
// server is healthy, predictions go to any server. If the chosen server is
// draining, it still answers for a while. Otherwise it returns an error that
// says why it is not healthy.
//
// A prediction that ends with UNAVAILABLE or CANCELLED (by a server that stops)
// is tried up to three times, unless `options` forbid it. Other errors are not
// retried, unless `options` ask for it. If a server has answered a prediction
// and cannot be reached later, predictions wait for it until their timeout.
// GetRpcErrorDetails() of rpc_status.h tells why a call failed. A connection is
// dropped if the server is silent for four seconds during a call.
//
// Thread-safe. One client is enough for a process. Every call has a timeout,
// after which it ends with DEADLINE_EXCEEDED. The destructor waits for the
// calls in flight.
//
//   VisionClient client("127.0.0.1:8001");
//   v1::ClassifyRequest request;
//   request.add_images()->set_encoded(jpeg);
//   auto response = client.Classify(request, absl::Seconds(5));
class VisionClient {
 public:
  template <typename Response>
  using Done = std::function<void(absl::StatusOr<Response> response)>;
  using ServingStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // `server` is "host:port", or a list of addresses in gRPC's format, such as
  // "ipv4:10.0.0.1:8001,10.0.0.2:8001". The client connects when it is first
  // used.
  explicit VisionClient(absl::string_view server,
                        const VisionClientOptions& options = {});
  ~VisionClient();

  absl::StatusOr<v1::ClassifyResponse> Classify(
      const v1::ClassifyRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::DetectResponse> Detect(const v1::DetectRequest& request,
                                            absl::Duration timeout);
  absl::StatusOr<v1::SegmentResponse> Segment(const v1::SegmentRequest& request,
                                              absl::Duration timeout);

  // These methods do not wait for the answer. `done` is called exactly once, on
  // a thread of gRPC, and must not block.
  CallHandle Classify(const v1::ClassifyRequest& request,
                      absl::Duration timeout, Done<v1::ClassifyResponse> done)
      ABSL_LOCKS_EXCLUDED(mu_);
  CallHandle Detect(const v1::DetectRequest& request, absl::Duration timeout,
                    Done<v1::DetectResponse> done) ABSL_LOCKS_EXCLUDED(mu_);
  CallHandle Segment(const v1::SegmentRequest& request, absl::Duration timeout,
                     Done<v1::SegmentResponse> done) ABSL_LOCKS_EXCLUDED(mu_);

  // Begins a StreamPredict call. The client must outlive the stream.
  std::unique_ptr<PredictStream> OpenStream(const v1::StreamConfig& config);

  // Connects to a healthy server, for predictions. Returns UNAVAILABLE if the
  // first attempt fails, and DEADLINE_EXCEEDED if the attempt takes too long.
  absl::Status Connect(absl::Duration timeout);

  // Waits until it is known whether a server is healthy, but at most for
  // `timeout`. Call this before the first prediction with a callback and before
  // the first stream. If they begin before the health is known, they use only
  // healthy servers, and fail if there is none. Blocking predictions wait by
  // themselves.
  void AwaitHealth(absl::Duration timeout);

  // Returns the error with a message that names the server (see reach.h).
  absl::Status Explain(const absl::Status& error) const {
    return client::Explain(reach_, error);
  }

  // The methods below also work with a server that is not healthy.

  absl::StatusOr<v1::Model> GetModel(absl::string_view name,
                                     absl::Duration timeout);

  // Returns all models, without their classes, ordered by name.
  absl::StatusOr<std::vector<v1::Model>> ListModels(absl::Duration timeout);

  // See AdminService.GetBatchProfile.
  absl::StatusOr<v1::BatchProfile> GetBatchProfile(absl::string_view name,
                                                   absl::Duration timeout);

  // The methods below are the other methods of AdminService. They are never
  // retried.
  absl::StatusOr<v1::LoadModelResponse> LoadModel(
      const v1::LoadModelRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::UnloadModelResponse> UnloadModel(
      const v1::UnloadModelRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::SetVersionLabelResponse> SetVersionLabel(
      const v1::SetVersionLabelRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::ServerInfo> GetServerInfo(absl::Duration timeout);
  absl::StatusOr<v1::RuntimeSettings> UpdateRuntimeSettings(
      const v1::UpdateRuntimeSettingsRequest& request, absl::Duration timeout);

  // Returns the status of `service`. If it is empty, returns the status of the
  // whole server. Returns NOT_FOUND if the server does not know the service.
  absl::StatusOr<ServingStatus> CheckHealth(absl::string_view service,
                                            absl::Duration timeout);

 private:
  using AsyncStub = v1::VisionService::StubInterface::async_interface;
  template <typename Request, typename Response>
  using AsyncMethod = void (AsyncStub::*)(grpc::ClientContext* context,
                                          const Request* request,
                                          Response* response,
                                          std::function<void(grpc::Status)>);

  template <typename Request, typename Response>
  using Method = grpc::Status (v1::VisionService::Stub::*)(
      grpc::ClientContext* context, const Request& request, Response* response);

  // Returns the stub for a prediction that begins now.
  v1::VisionService::Stub& Predictor();
  // Returns true if predictions wait for a server that cannot be reached.
  bool WaitsForServer() const { return retry_ && has_answered_; }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Predict(Method<Request, Response> method,
                                   const Request& request,
                                   absl::Duration timeout);

  template <typename Request, typename Response>
  CallHandle Start(AsyncMethod<Request, Response> method,
                   const Request& request, absl::Duration timeout,
                   Done<Response> done) ABSL_LOCKS_EXCLUDED(mu_);

  const Reach reach_;
  const std::string traceparent_;
  const bool retry_;
  std::atomic<bool> has_answered_{false};  // A prediction ended with OK.
  // Sends predictions to healthy servers.
  std::shared_ptr<grpc::Channel> predict_channel_;
  std::unique_ptr<v1::VisionService::Stub> predict_;
  // These stubs use a channel that ignores the servers' health. `control_` also
  // sends predictions if no server is healthy.
  std::unique_ptr<v1::VisionService::Stub> control_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;

  absl::Mutex mu_;
  int in_flight_ ABSL_GUARDED_BY(mu_) =
      0;  // Calls whose `done` has not returned.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_VISION_CLIENT_H_
