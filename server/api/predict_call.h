#ifndef SFMAMBA_SERVER_API_PREDICT_CALL_H_
#define SFMAMBA_SERVER_API_PREDICT_CALL_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "server/call/call.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::api {

// Runs one prediction call, from its request to its response. The object exists
// until the response is sent, because `prediction_` reserves the memory of the
// call until then.
//
// `Codec` converts the client's request to a PredictionRequest, and the results
// of the prediction to the client's response. A Codec implements ResponseWriter
// except Done() and ReleaseRequest(). A Codec also has these members:
//
//   Codec(const TransportEnvironment& environment, call::Call* call);
//   // Returns the pictures of the request.
//   call::Pictures& pictures();
//   // Returns OK, or the error with which the call must end.
//   absl::Status status() const;
//   // Converts the client's request to a PredictionRequest. PredictCall then
//   // sets the members `method`, `call` and `message_bytes`.
//   PredictionRequest Translate();
//   // Converts an error of the prediction to the error for the client. For
//   // example, replaces the name of a field with the field's name in the
//   // client's request.
//   absl::Status Worded(status) const;
//   // Returns the response. If the codec has encoded results through
//   // call->results(), the response does not contain these results.
//   // PredictCall calls this method last, and only if there is no error.
//   Response TakeResponse();
template <typename Codec>
class PredictCall final
    : private Codec,
      public std::enable_shared_from_this<PredictCall<Codec>> {
 public:
  static void Run(const prediction::TransportEnvironment& environment,
                  observability::Method counted_as,
                  std::unique_ptr<call::Call> call) {
    const auto made =
        std::make_shared<PredictCall>(environment, counted_as, std::move(call));
    made->self_ = made;
    made->call_->OnCancel([weak = made->weak_from_this()] {
      if (const auto living = weak.lock()) living->prediction_.Cancel();
    });
    made->prediction_.Start(made->status());
  }

  // The constructor is public only for std::make_shared(). Callers use Run().
  PredictCall(const prediction::TransportEnvironment& environment,
              observability::Method counted_as,
              std::unique_ptr<call::Call> call)
      : Codec(environment, call.get()),
        call_(std::move(call)),
        prediction_(environment, Translated(counted_as), this) {}

 private:
  prediction::PredictionRequest Translated(observability::Method counted_as) {
    prediction::PredictionRequest translated = this->Translate();
    translated.method = counted_as;
    translated.call = call_->info();
    translated.message_bytes = this->pictures().bytes();
    return translated;
  }

  // Frees only the pictures. The request's parameters stay valid.
  void ReleaseRequest() override { this->pictures().Release(); }
  void Done(const absl::Status& status) override {
    const std::unique_ptr<call::Call> call = std::move(call_);
    auto sent = [self = std::move(self_)] {};
    if (!status.ok()) {
      return call->Finish(this->Worded(status), nullptr, std::move(sent));
    }
    auto response = this->TakeResponse();
    call->Finish(status, &response, std::move(sent));
  }

  std::shared_ptr<PredictCall> self_;  // Null after the call is finished.
  std::unique_ptr<call::Call> call_;   // Null after the call is finished.
  // This member comes last because it uses the members above.
  prediction::Prediction prediction_;
};

}  // namespace sfmamba::api

#endif  // SFMAMBA_SERVER_API_PREDICT_CALL_H_
