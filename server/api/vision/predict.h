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
#include "server/api/vision/from_proto.h"
#include "server/call/call.h"
#include "server/call/encoded_results.h"
#include "server/errors/error.h"
#include "server/image/image_source.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::api {

// A call from its request to its response. It lives until the response is sent,
// because it counts as held memory until then.
template <typename Request, typename Response>
class PredictCall final
    : private prediction::ResponseWriter,
      public std::enable_shared_from_this<PredictCall<Request, Response>> {
 public:
  static void Run(const prediction::PredictionEnvironment& environment,
                  observability::Method counted_as,
                  std::unique_ptr<call::Call> call) {
    const auto made =
        std::make_shared<PredictCall>(environment, counted_as, std::move(call));
    made->self_ = made;
    made->call_->OnCancel([weak = made->weak_from_this()] {
      if (const auto living = weak.lock()) living->prediction_.Cancel();
    });
    made->prediction_.Start(made->pictures_->status());
  }

  // For Run() only.
  PredictCall(const prediction::PredictionEnvironment& environment,
              observability::Method counted_as,
              std::unique_ptr<call::Call> call)
      : call_(std::move(call)),
        pictures_(
            call_->ReadPictures(environment.limits.max_images, &request_)),
        prediction_(environment, Translate(counted_as), this) {}

 private:
  static_assert(Response::kResultsFieldNumber == call::kResultsField);
  using Result = std::decay_t<decltype(Response().results(0))>;

  prediction::PredictionRequest Translate(observability::Method counted_as) {
    prediction::PredictionRequest translated = FromProto(request_);
    translated.method = counted_as;
    translated.call = call_->info();
    translated.message_bytes = call_->request_bytes();
    translated.images = pictures_->count();
    translated.image = [this](int i) {
      absl::StatusOr<image::ImageSource> source = FromProto(request_.images(i));
      if (source.ok()) pictures_->SetBytes(&*source);
      return source;
    };
    return translated;
  }

  void Start(const std::string& model, int images) override {
    rest_.set_request_id(request_.request_id());
    rest_.set_model(model);
    call_->results().Start(images);
  }
  // Parameters stay readable.
  void ReleaseRequest() override { pictures_->Release(); }
  int64_t SetAnswer(int i, prediction::Answer answer) override {
    return call_->results().Set(i, std::get<Result>(answer.result));
  }
  void SetError(int i, const absl::Status& error) override {
    Result result;
    *result.mutable_error() = server::ToRpcStatus(error);
    call_->results().Set(i, result);
  }
  void SetTiming(const v1::Timing& timing) override {
    *rest_.mutable_timing() = timing;
  }
  int64_t Bytes() const override { return call_->results().Bytes(rest_); }
  void Done(const absl::Status& status) override {
    const std::unique_ptr<call::Call> call = std::move(call_);
    call->Finish(status, &rest_, [self = std::move(self_)] {});
  }

  std::shared_ptr<PredictCall> self_;  // Until the call is finished.
  std::unique_ptr<call::Call> call_;   // Null once it is finished.
  Request request_;
  const std::unique_ptr<call::Pictures> pictures_;
  Response rest_;                      // The response without its results.
  prediction::Prediction prediction_;  // Last: it uses everything above.
};

// Handler of calls that ask a model about images, such as a ClassifyRequest and
// its ClassifyResponse: see call::Handler. A malformed request is counted and
// logged like any other.
template <typename Request, typename Response>
void Predict(const prediction::TransportEnvironment& environment,
             observability::Method counted_as,
             std::unique_ptr<call::Call> call) {
  PredictCall<Request, Response>::Run(environment, counted_as, std::move(call));
}

}  // namespace sfmamba::api

#endif  // SFMAMBA_SERVER_API_VISION_PREDICT_H_
