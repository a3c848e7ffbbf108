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

// A call that asks a model about images, from its request to its response. It
// lives until the response is sent, because it counts as held memory until
// then.
//
// `Codec` translates the request and the response. It is a ResponseWriter but
// for Done() and ReleaseRequest(), and has
//
//   Codec(const TransportEnvironment& environment, call::Call* call);
//   call::Pictures& pictures();
//   absl::Status status() const;       // The error to answer at once, or OK.
//   PredictionRequest Translate();     // Without what the call says.
//   absl::Status Worded(status) const; // An error in the request's words.
//   Response TakeResponse();           // Without the call's results. Called
//                                      // last, unless there is an error.
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

  // For Run() only.
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

  // Parameters stay readable.
  void ReleaseRequest() override { this->pictures().Release(); }
  void Done(const absl::Status& status) override {
    const std::unique_ptr<call::Call> call = std::move(call_);
    auto sent = [self = std::move(self_)] {};
    if (!status.ok()) {
      return call->Finish(this->Worded(status), nullptr, std::move(sent));
    }
    auto response = this->TakeResponse();  // Freed before its bytes are sent.
    call->Finish(status, &response, std::move(sent));
  }

  std::shared_ptr<PredictCall> self_;  // Until the call is finished.
  std::unique_ptr<call::Call> call_;   // Null once it is finished.
  prediction::Prediction prediction_;  // Last: it uses everything above.
};

}  // namespace sfmamba::api

#endif  // SFMAMBA_SERVER_API_PREDICT_CALL_H_
