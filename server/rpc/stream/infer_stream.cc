#include "server/rpc/stream/infer_stream.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "inference/grpc_service.pb.h"
#include "inference/packed_response.pb.h"
#include "server/api/kserve/infer.h"
#include "server/api/kserve/infer_parameters.h"
#include "server/call/call.h"
#include "server/observability/metrics.h"
#include "server/rpc/call.h"
#include "server/rpc/stream/predict_item.h"
#include "server/rpc/wire/received_request.h"

namespace sfmamba::rpc {
namespace {

// The maximum number of bytes of a request's id in an error message.
constexpr size_t kMaxIdShown = 128;
constexpr char kFinalResponse[] = "triton_final_response";

// Returns true if the client asked that an error ends the stream with a gRPC
// status.
bool WantsStatus(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("triton_grpc_error");
  return found != metadata.end() &&
         (found->second == "true" || found->second == "1");
}

// Returns an error as text. The text starts with the id of the request, if the
// request has an id. The client receives only this text.
std::string Describe(const absl::Status& status, absl::string_view id) {
  const std::string request =
      id.empty()
          ? ""
          : absl::StrCat("[request id: ", base::Utf8Prefix(id, kMaxIdShown),
                         "] ");
  return absl::StrCat(request, absl::StatusCodeToString(status.code()), ": ",
                      status.message());
}

class InferItem final : public PredictItem {
 public:
  InferItem(const prediction::TransportEnvironment& environment,
            observability::Method counted_as, prediction::CallInfo info,
            grpc::ByteBuffer* received, bool errors_end_stream)
      : PredictItem(environment, counted_as, kserve::Infer, std::move(info)),
        errors_end_stream_(errors_end_stream),
        pictures_(rpc::ReadPictures(received, environment.limits.max_images,
                                    &request_)),
        id_(request_.id()),
        wants_final_mark_(kserve::WantsFinalMark(request_)) {}

  const std::string& id() const override { return id_; }
  bool in_order() const override { return id_.empty(); }

 private:
  std::unique_ptr<call::Pictures> ReadPictures(
      int, call::Message* request) override {
    static_cast<inference::ModelInferRequest*>(request)->Swap(&request_);
    return std::move(pictures_);
  }

  void Answer(const absl::Status& status, call::EncodedResults*,
              call::Message* rest) override {
    if (!status.ok() && errors_end_stream_) {
      stream_error_ = status;
      return;
    }
    inference::packed::ModelStreamInferResponse message;
    auto* const response = message.mutable_infer_response();
    if (status.ok()) {
      response->Swap(static_cast<inference::packed::ModelInferResponse*>(rest));
    } else {
      message.set_error_message(Describe(status, id_));
      response->set_id(id_);
    }
    if (wants_final_mark_) {
      (*response->mutable_parameters())[kFinalResponse].set_bool_param(true);
    }
    Serialize(message, &answer_);
  }

  const bool errors_end_stream_;
  // ReadPictures() moves the contents out of this message.
  inference::ModelInferRequest request_;
  std::unique_ptr<call::Pictures> pictures_;
  const std::string id_;
  const bool wants_final_mark_;
};

}  // namespace

StreamCall::Options InferStream::Options() {
  StreamCall::Options options;
  options.max_in_flight = kMaxInFlight;
  return options;
}

InferStream::InferStream(const prediction::TransportEnvironment& environment,
                         const grpc::CallbackServerContext& context)
    : env_(environment),
      context_(context),
      errors_end_it_(WantsStatus(context)) {}

absl::StatusOr<std::unique_ptr<StreamItem>> InferStream::operator()(
    StreamCall& stream, grpc::ByteBuffer* received) {
  return std::make_unique<InferItem>(env_, stream.method(),
                                     InfoOf(context_, stream.caller()),
                                     received, errors_end_it_);
}

}  // namespace sfmamba::rpc
