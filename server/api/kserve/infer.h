#ifndef SFMAMBA_SERVER_API_KSERVE_INFER_H_
#define SFMAMBA_SERVER_API_KSERVE_INFER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/grpc_service.pb.h"
#include "inference/packed_response.pb.h"
#include "server/api/kserve/infer_outputs.h"
#include "server/api/kserve/published_model.h"
#include "server/call/call.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::kserve {

// Rewrites the field names in a prediction's error to those of
// ModelInferRequest, such as "images[2]" to "inputs[0][2]". Also rewrites the
// field name in the message.
absl::Status InRequestWords(const absl::Status& status);

// Converts a ModelInferRequest and its response. Used as the Codec of
// api::PredictCall.
class InferCodec : public prediction::ResponseWriter {
 protected:
  InferCodec(const prediction::TransportEnvironment& environment,
             call::Call* call);

  call::Pictures& pictures() { return *pictures_; }
  absl::Status status() const;
  prediction::PredictionRequest Translate();
  absl::Status Worded(const absl::Status& status) const {
    return InRequestWords(status);
  }
  inference::packed::ModelInferResponse TakeResponse();

 private:
  // Converts the parts that depend on the model if the model is loaded.
  absl::Status TranslateTask(prediction::PredictionRequest* request);

  void Start(const std::string&, int images) override {
    outputs_.Start(images);
  }
  int64_t SetAnswer(int i, prediction::Answer answer) override {
    return outputs_.SetAnswer(i, std::move(answer));
  }
  // Never called, because no request allows partial results.
  void SetError(int, const absl::Status&) override {}
  void SetTiming(const v1::Timing&) override {}
  int64_t Bytes() const override { return outputs_.Bytes(); }

  inference::ModelInferRequest request_;
  const std::unique_ptr<call::Pictures> pictures_;
  const bool may_read_;  // True if the caller may see model names.
  const absl::StatusOr<PublishedModel> model_;
  InferOutputs outputs_;
};

// Answers a ModelInferRequest, see call::Handler. The response is a
// packed::ModelInferResponse.
void Infer(const prediction::TransportEnvironment& environment,
           observability::Method counted_as, std::unique_ptr<call::Call> call);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_INFER_H_
