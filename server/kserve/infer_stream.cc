#include "server/kserve/infer_stream.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "server/kserve/inference.h"
#include "server/observability/metrics.h"
#include "server/rpc/call.h"

namespace sfmamba::kserve {
namespace {

using observability::Method;

constexpr size_t kMaxIdShown = 128;  // Bytes.
constexpr char kFinalResponse[] = "triton_final_response";

// Whether the client wants an error to end the stream with its status.
bool WantsStatus(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("triton_grpc_error");
  return found != metadata.end() &&
         (found->second == "true" || found->second == "1");
}

// Returns an error as text, with the request's id: the message is all that
// clients see of an error.
std::string Describe(const absl::Status& status, absl::string_view id) {
  const std::string request =
      id.empty()
          ? ""
          : absl::StrCat("[request id: ", base::Utf8Prefix(id, kMaxIdShown),
                         "] ");
  return absl::StrCat(request, absl::StatusCodeToString(status.code()), ": ",
                      status.message());
}

class InferItem final : public rpc::StreamItem {
 public:
  InferItem(const prediction::TransportEnvironment& environment,
            const SharedMemory* memory,
            const grpc::CallbackServerContext& context,
            const security::Caller& caller, grpc::ByteBuffer* message,
            bool errors_end_stream)
      : errors_end_stream_(errors_end_stream),
        inference_(environment, Method::kModelStreamInfer,
                   rpc::InfoOf(context, caller), memory, message,
                   [this](const absl::Status& status,
                          inference::packed::ModelInferResponse* response) {
                     Done(status, response);
                   }) {}

  void Cancel() override { inference_.Cancel(); }

  const std::string& id() const override { return inference_.id(); }
  bool in_order() const override { return id().empty(); }

 private:
  void Begin(const absl::Status& serving) override { inference_.Run(serving); }

  void Done(const absl::Status& status,
            inference::packed::ModelInferResponse* response) {
    if (!status.ok() && errors_end_stream_) {
      stream_error_ = status;
    } else {
      Answer(status, response);
    }
    End();
  }

  void Answer(const absl::Status& status,
              inference::packed::ModelInferResponse* response) {
    inference::packed::ModelStreamInferResponse message;
    if (!status.ok()) {
      message.set_error_message(Describe(status, id()));
      response->set_id(id());
    }
    if (inference_.wants_final_mark()) {
      (*response->mutable_parameters())[kFinalResponse].set_bool_param(true);
    }
    message.mutable_infer_response()->Swap(response);
    rpc::Serialize(message, &answer_);
  }

  const bool errors_end_stream_;
  Inference inference_;  // Last: it uses everything above.
};

rpc::StreamCall::Options OptionsOf(rpc::StreamRights rights,
                                   std::function<absl::Status()> serving) {
  rpc::StreamCall::Options options;
  options.method = Method::kModelStreamInfer;
  options.max_in_flight = InferStream::kMaxInFlight;
  options.serving = std::move(serving);
  options.caller = std::move(rights.caller);
  options.allowed = std::move(rights.allowed);
  return options;
}

}  // namespace

InferStream::InferStream(const prediction::TransportEnvironment& environment,
                         const SharedMemory* memory,
                         grpc::CallbackServerContext* context,
                         rpc::SendWatch* sends, rpc::StreamRights rights,
                         std::function<absl::Status()> serving)
    : StreamCall(environment, context, sends,
                 OptionsOf(std::move(rights), std::move(serving))),
      env_(environment),
      memory_(memory),
      context_(*context),
      errors_end_it_(WantsStatus(*context)) {}

absl::StatusOr<std::unique_ptr<rpc::StreamItem>> InferStream::Take(
    grpc::ByteBuffer* received) {
  return std::make_unique<InferItem>(env_, memory_, context_, caller(),
                                     received, errors_end_it_);
}

}  // namespace sfmamba::kserve
