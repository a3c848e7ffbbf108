#ifndef SFMAMBA_SERVER_RPC_VISION_SERVICE_H_
#define SFMAMBA_SERVER_RPC_VISION_SERVICE_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/send_watch.h"
#include "server/rpc/stream/stream_set.h"
#include "sfmamba/v1/vision.grpc.pb.h"

namespace sfmamba::rpc {

// Methods get the bytes of their messages, so that malformed ones are answered
// and counted like others.
using VisionMethods = v1::VisionService::WithRawCallbackMethod_Classify<
    v1::VisionService::WithRawCallbackMethod_Detect<
        v1::VisionService::WithRawCallbackMethod_Segment<
            v1::VisionService::WithRawCallbackMethod_GetModel<
                v1::VisionService::WithRawCallbackMethod_ListModels<
                    v1::VisionService::WithRawCallbackMethod_StreamPredict<
                        v1::VisionService::Service>>>>>>;

// sfmamba.v1.VisionService. No handler blocks or lets an exception out.
// Thread-safe.
class VisionService final : public VisionMethods {
 public:
  // A call whose client has not taken its answer after `send_timeout` is ended
  // by EndUnreadCalls().
  explicit VisionService(
      prediction::TransportEnvironment environment,
      absl::Duration send_timeout = absl::InfiniteDuration());

  // From now on new calls are answered UNAVAILABLE with reason DRAINING, to be
  // tried elsewhere at once, and streams are told to end.
  void StartDraining();
  // Ends calls whose answers are not read, and idle streams. To be called again
  // and again, by a thread that is not gRPC's.
  void EndUnreadCalls();

  grpc::ServerUnaryReactor* Classify(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Detect(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Segment(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamPredict(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;

 private:
  // A prediction's call, running.
  template <typename Call>
  grpc::ServerUnaryReactor* Predict(observability::Method method,
                                    grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response);
  // UNAVAILABLE while draining.
  absl::Status CheckServing() const;
  // The same, and whether the caller may read.
  absl::Status CheckReader(const grpc::CallbackServerContext& context,
                           observability::RequestRecord* record) const;
  // Counts and logs a call that is refused, and returns how it ends.
  grpc::Status Refuse(observability::Method method, int64_t message_bytes,
                      const absl::Status& status,
                      grpc::CallbackServerContext* context) const;
  observability::RequestRecord Record(
      observability::Method method, int64_t message_bytes,
      const grpc::CallbackServerContext& context) const;

  const prediction::TransportEnvironment env_;
  SendWatch sends_;
  StreamSet streams_;
  std::atomic<bool> draining_{false};
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_VISION_SERVICE_H_
