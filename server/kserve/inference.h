#ifndef SFMAMBA_SERVER_KSERVE_INFERENCE_H_
#define SFMAMBA_SERVER_KSERVE_INFERENCE_H_

#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/packed_response.pb.h"
#include "server/kserve/infer_outputs.h"
#include "server/kserve/published_model.h"
#include "server/kserve/received_inference.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/call.h"

namespace sfmamba::kserve {

// A prediction's error with the fields of a ModelInferRequest in place of its
// own ("inputs[0][2]" for "images[2]"), which the message then names too.
absl::Status InRequestWords(const absl::Status& status);

// One ModelInferRequest from its bytes to its response: a prediction, asked and
// answered in tensors. Its life is a prediction's.
class Inference final : private prediction::ResponseWriter {
 public:
  using Response = inference::packed::ModelInferResponse;
  // Called exactly once, as the last; `response` is complete if `status` is
  // OK. May destroy the inference.
  using Ended =
      absl::AnyInvocable<void(const absl::Status& status, Response* response)>;

  // Takes the bytes of `message`.
  Inference(const prediction::TransportEnvironment& environment,
            observability::Method method, rpc::CallInfo call,
            grpc::ByteBuffer* message, Ended ended);

  // `serving` is the error to answer at once, or OK.
  void Run(const absl::Status& serving);
  void Cancel() { prediction_.Cancel(); }

  // The request's own; echoed.
  const std::string& id() const { return received_.message().id(); }
  // Whether a stream's client asks which answer to the request is the last.
  bool wants_final_mark() const;

 private:
  // Says what is asked of the model in a prediction's words.
  prediction::PredictionRequest Translate(observability::Method method,
                                          rpc::CallInfo call);
  // The part that depends on the model, if it is there.
  absl::Status TranslateTask(prediction::PredictionRequest* request);

  void Start(const std::string&, int images) override {
    outputs_.Start(images);
  }
  void ReleaseRequest() override { received_.ReleaseImages(); }
  int64_t SetAnswer(int i, prediction::Answer answer) override {
    return outputs_.SetAnswer(i, std::move(answer));
  }
  void SetError(int, const absl::Status&) override {}  // Never: it is atomic.
  void SetTiming(const v1::Timing&) override {}
  int64_t Bytes() const override { return outputs_.Bytes(); }
  void Done(const absl::Status& status) override;

  ReceivedInference received_;
  const bool may_read_;  // The caller may ask which models there are.
  const absl::StatusOr<PublishedModel> model_;
  InferOutputs outputs_;
  Ended ended_;
  prediction::Prediction prediction_;  // Last: it uses everything above.
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_INFERENCE_H_
