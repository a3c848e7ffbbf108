#ifndef SFMAMBA_SERVER_API_VISION_PREDICT_H_
#define SFMAMBA_SERVER_API_VISION_PREDICT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/api/predict_call.h"
#include "server/api/vision/from_proto.h"
#include "server/call/call.h"
#include "server/call/encoded_results.h"
#include "server/errors/error.h"
#include "server/image/image_source.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::api {

// Converts a ClassifyRequest, DetectRequest or SegmentRequest to a
// PredictionRequest. Converts the results of the prediction to the matching
// response, for example a ClassifyResponse. Used as the Codec of PredictCall.
template <typename Request, typename Response>
class VisionCodec : public prediction::ResponseWriter {
 protected:
  VisionCodec(const prediction::TransportEnvironment& environment,
              call::Call* call)
      : results_(call->results()),
        pictures_(
            call->ReadPictures(environment.limits.max_images, &request_)) {}

  call::Pictures& pictures() { return *pictures_; }
  const absl::Status& status() const { return pictures_->status(); }
  prediction::PredictionRequest Translate() {
    prediction::PredictionRequest translated = FromProto(request_);
    translated.images = pictures_->count();
    translated.image = [this](int i) {
      absl::StatusOr<image::ImageSource> source = FromProto(request_.images(i));
      if (source.ok()) pictures_->SetBytes(&*source);
      return source;
    };
    return translated;
  }
  const absl::Status& Worded(const absl::Status& status) const {
    return status;
  }
  Response TakeResponse() { return std::move(rest_); }

 private:
  static_assert(Response::kResultsFieldNumber == call::kResultsField);
  using Result = std::decay_t<decltype(Response().results(0))>;

  void Start(const std::string& model, int images) override {
    rest_.set_request_id(request_.request_id());
    rest_.set_model(model);
    results_.Start(images);
  }
  int64_t SetAnswer(int i, prediction::Answer answer) override {
    return results_.Set(i, std::get<Result>(answer.result));
  }
  void SetError(int i, const absl::Status& error) override {
    Result result;
    *result.mutable_error() = server::ToRpcStatus(error);
    results_.Set(i, result);
  }
  void SetTiming(const v1::Timing& timing) override {
    *rest_.mutable_timing() = timing;
  }
  int64_t Bytes() const override { return results_.Bytes(rest_); }

  // Encodes the results. The call owns `results_`, which is valid until
  // call::Call::Finish().
  call::ResultSink& results_;
  Request request_;
  const std::unique_ptr<call::Pictures> pictures_;
  Response rest_;  // The response without its results.
};

// The call::Handler of a prediction method, such as Classify. Malformed
// requests are counted and logged like other requests.
template <typename Request, typename Response>
void Predict(const prediction::TransportEnvironment& environment,
             observability::Method counted_as,
             std::unique_ptr<call::Call> call) {
  PredictCall<VisionCodec<Request, Response>>::Run(environment, counted_as,
                                                   std::move(call));
}

}  // namespace sfmamba::api

#endif  // SFMAMBA_SERVER_API_VISION_PREDICT_H_
