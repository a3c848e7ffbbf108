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

// Converts an error of a prediction to the error for the client. Replaces the
// name of the field in the error with the name of the corresponding field of
// ModelInferRequest. For example, "images[2]" becomes "inputs[0][2]". The
// message of the returned error contains the new name too.
absl::Status InRequestWords(const absl::Status& status);

// Converts a ModelInferRequest to a PredictionRequest, and the results of the
// prediction to a packed::ModelInferResponse. Used as the Codec of
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
  // If the model is loaded, converts the request's parameters and requested
  // outputs, and returns an error if they are invalid. If the model is not
  // loaded, sets only default parameters.
  absl::Status TranslateTask(prediction::PredictionRequest* request);

  void Start(const std::string&, int images) override {
    outputs_.Start(images);
  }
  int64_t SetAnswer(int i, prediction::Answer answer) override {
    return outputs_.SetAnswer(i, std::move(answer));
  }
  // SetError() is never called, because no request allows partial results.
  void SetError(int, const absl::Status&) override {}
  void SetTiming(const v1::Timing&) override {}
  int64_t Bytes() const override { return outputs_.Bytes(); }

  inference::ModelInferRequest request_;
  const std::unique_ptr<call::Pictures> pictures_;
  const bool may_read_;  // True if the caller may see model names.
  const absl::StatusOr<PublishedModel> model_;
  InferOutputs outputs_;
};

// The call::Handler of ModelInfer. The response is a
// packed::ModelInferResponse.
void Infer(const prediction::TransportEnvironment& environment,
           observability::Method counted_as, std::unique_ptr<call::Call> call);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_INFER_H_
