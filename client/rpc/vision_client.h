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

// A call in flight. Copyable; may outlive the call.
class CallHandle {
 public:
  explicit CallHandle(std::shared_ptr<grpc::ClientContext> context)
      : context_(std::move(context)) {}

  // Asks for an early end: the call's callback then gets CANCELLED, unless the
  // call has just ended another way. Thread-safe.
  void Cancel() const { context_->TryCancel(); }

 private:
  std::shared_ptr<grpc::ClientContext> context_;
};

struct VisionClientOptions {
  // Whether connections are shared with other clients of this process.
  bool share_connections = true;
  // Whether a prediction that ends with UNAVAILABLE is tried again, and waits
  // for a server that has answered before and cannot be reached now.
  bool retry = true;
  // Whether a prediction that ends with RESOURCE_EXHAUSTED is tried again too,
  // up to four times, after the delay that the server asks for.
  bool retry_exhausted = false;
  ServerAccess access;
  // The W3C header that predictions carry; empty: none. It is not for the
  // methods that wait, nor for streams.
  std::string traceparent;
};

// Calls a vision server, or several behind one name. Predictions go round-robin
// to the addresses of the name that report themselves healthy. If none does,
// they go to any: a server that drains still answers for a while, and others
// say why they do not. UNAVAILABLE, and CANCELLED by a server that stops, are
// tried three times unless `options` forbid it. No other error is, unless
// `options` ask for it. If a server has answered a prediction and then cannot
// be reached, later attempts wait for it until their timeout.
// GetRpcErrorDetails() of rpc_status.h tells why a call failed. A server that
// is silent for four seconds during a call is given up.
//
// Thread-safe; one client serves a whole process. Every call has a timeout,
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

  // `server` is "host:port", or addresses as gRPC lists them, such as
  // "ipv4:10.0.0.1:8001,10.0.0.2:8001". Connects when first used.
  explicit VisionClient(absl::string_view server,
                        const VisionClientOptions& options = {});
  ~VisionClient();

  absl::StatusOr<v1::ClassifyResponse> Classify(
      const v1::ClassifyRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::DetectResponse> Detect(const v1::DetectRequest& request,
                                            absl::Duration timeout);
  absl::StatusOr<v1::SegmentResponse> Segment(const v1::SegmentRequest& request,
                                              absl::Duration timeout);

  // These return at once; `done` is called exactly once, on a thread of gRPC's,
  // and must not block.
  CallHandle Classify(const v1::ClassifyRequest& request,
                      absl::Duration timeout, Done<v1::ClassifyResponse> done)
      ABSL_LOCKS_EXCLUDED(mu_);
  CallHandle Detect(const v1::DetectRequest& request, absl::Duration timeout,
                    Done<v1::DetectResponse> done) ABSL_LOCKS_EXCLUDED(mu_);
  CallHandle Segment(const v1::SegmentRequest& request, absl::Duration timeout,
                     Done<v1::SegmentResponse> done) ABSL_LOCKS_EXCLUDED(mu_);

  // Begins a StreamPredict call. This client outlives it.
  std::unique_ptr<PredictStream> OpenStream(const v1::StreamConfig& config);

  // Connects, for predictions, to a healthy server. UNAVAILABLE if the first
  // attempt fails, DEADLINE_EXCEEDED if it takes too long.
  absl::Status Connect(absl::Duration timeout);

  // Returns once it is known whether there is a healthy server, or after
  // `timeout`. Calls that return at once, and streams, fail if they begin
  // before and no server is healthy.
  void AwaitHealth(absl::Duration timeout);

  // The error as a sentence that names the server: see reach.h.
  absl::Status Explain(const absl::Status& error) const {
    return client::Explain(reach_, error);
  }

  // The questions about a server below are also put to one that is not healthy.

  absl::StatusOr<v1::Model> GetModel(absl::string_view name,
                                     absl::Duration timeout);

  // All models, without their classes, ordered by name.
  absl::StatusOr<std::vector<v1::Model>> ListModels(absl::Duration timeout);

  // See AdminService.GetBatchProfile.
  absl::StatusOr<v1::BatchProfile> GetBatchProfile(absl::string_view name,
                                                   absl::Duration timeout);

  // The other methods of AdminService. None is tried again.
  absl::StatusOr<v1::LoadModelResponse> LoadModel(
      const v1::LoadModelRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::UnloadModelResponse> UnloadModel(
      const v1::UnloadModelRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::SetVersionLabelResponse> SetVersionLabel(
      const v1::SetVersionLabelRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::ServerInfo> GetServerInfo(absl::Duration timeout);
  absl::StatusOr<v1::RuntimeSettings> UpdateRuntimeSettings(
      const v1::UpdateRuntimeSettingsRequest& request, absl::Duration timeout);

  // The status of `service`, empty for the server as a whole; NOT_FOUND if the
  // server does not know it.
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

  // The stub for a prediction that begins now.
  v1::VisionService::Stub& Predictor();
  // Whether that prediction waits for a server that cannot be reached.
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
  std::atomic<bool> has_answered_{false};  // A prediction, with OK.
  // Sends predictions to healthy servers.
  std::shared_ptr<grpc::Channel> predict_channel_;
  std::unique_ptr<v1::VisionService::Stub> predict_;
  // Ask about the server, over a channel that ignores its health. control_ also
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
