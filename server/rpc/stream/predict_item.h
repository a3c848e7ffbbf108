#ifndef SFMAMBA_SERVER_RPC_STREAM_PREDICT_ITEM_H_
#define SFMAMBA_SERVER_RPC_STREAM_PREDICT_ITEM_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/call/call.h"
#include "server/call/cancellation.h"
#include "server/call/encoded_results.h"
#include "server/call/method_table.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction_request.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/stream/stream_call.h"

namespace sfmamba::rpc {

// A request of a stream. A call::Handler answers the request like a unary call.
class PredictItem : public StreamItem {
 public:
  ~PredictItem() override {
    if (sent_) sent_();
  }

  void Cancel() final { cancellation_.Cancel(); }

 protected:
  // `environment` must outlive the item.
  PredictItem(const prediction::TransportEnvironment& environment,
              observability::Method counted_as, call::Handler handler,
              prediction::CallInfo info)
      : env_(environment),
        counted_as_(counted_as),
        handler_(std::move(handler)),
        info_(std::move(info)) {}

  // Parses the request like call::Call::ReadPictures(). Called once.
  virtual std::unique_ptr<call::Pictures> ReadPictures(
      int max_images, call::Message* request) = 0;
  // Sets answer_ to the response, or sets stream_error_. The arguments are the
  // arguments of call::Call::Finish(). Called once.
  virtual void Answer(const absl::Status& status, call::EncodedResults* results,
                      call::Message* rest) = 0;

 private:
  class ItemCall;

  void Begin(const absl::Status& serving) final;

  const prediction::TransportEnvironment& env_;
  const observability::Method counted_as_;
  const call::Handler handler_;
  const prediction::CallInfo info_;
  call::Cancellation cancellation_;
  absl::AnyInvocable<void()> sent_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_PREDICT_ITEM_H_
