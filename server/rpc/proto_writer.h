#ifndef SFMAMBA_SERVER_RPC_PROTO_WRITER_H_
#define SFMAMBA_SERVER_RPC_PROTO_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/prediction/prediction.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/to_proto.h"
#include "server/rpc/wire/received_request.h"

namespace sfmamba::rpc {

// Reads a request of sfmamba.v1 from its bytes and writes what a prediction
// answers into its response; sending that is left to Done(). `Answer` is the
// alternative of prediction::Answer that the task gives.
template <typename Request, typename Response, typename Answer>
class ProtoWriter : protected prediction::ResponseWriter {
 protected:
  // Takes the bytes of `request`; ReceivedRequest's constructor.
  ProtoWriter(grpc::ByteBuffer* request, int max_images)
      : request_(request, max_images) {}

  void Start(const std::string& model, int images) final {
    response_.set_request_id(request_.message().request_id());
    response_.set_model(model);
    for (int i = 0; i < images; ++i) response_.add_results();
  }
  // Frees what the pictures arrived in; parameters stay readable.
  void ReleaseRequest() final { request_.ReleasePictures(); }
  int64_t SetAnswer(int i, prediction::Answer answer) final {
    auto* result = response_.mutable_results(i);
    ToProto(std::get<Answer>(std::move(answer)), result);
    return result->ByteSizeLong();
  }
  void SetError(int i, const absl::Status& error) final {
    *response_.mutable_results(i)->mutable_error() = ToRpcStatus(error);
  }
  void SetTiming(const prediction::Timing& timing) final {
    ToProto(timing, response_.mutable_timing());
  }
  int64_t Bytes() const final { return response_.ByteSizeLong(); }

  ReceivedRequest<Request> request_;
  Response response_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PROTO_WRITER_H_
