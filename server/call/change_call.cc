#include "server/call/change_call.h"

#include <utility>

#include "absl/memory/memory.h"
#include "server/errors/reasons.h"

namespace sfmamba::call {

std::shared_ptr<ChangeCall> ChangeCall::New(
    const prediction::TransportEnvironment& environment,
    observability::Method counted_as, std::unique_ptr<Call> call) {
  return absl::WrapUnique(
      new ChangeCall(environment, counted_as, std::move(call)));
}

ChangeCall::ChangeCall(const prediction::TransportEnvironment& environment,
                       observability::Method counted_as,
                       std::unique_ptr<Call> call)
    : call_(std::move(call)), record_(environment, counted_as, *call_) {
  record_.set_no_model();
}

absl::Status ChangeCall::Read(Message* request) {
  const absl::Status status = call_->Read(request);
  // The callback sends a response, which frees the request. The callback is
  // therefore registered only after the request was read. The callback holds
  // only a weak_ptr to this object. If the callback held a shared_ptr, the
  // object, its call and the callback would own each other.
  call_->OnCancel([weak = weak_from_this()] {
    const std::shared_ptr<ChangeCall> living = weak.lock();
    if (living == nullptr) return;
    living->Answer(server::Cancelled("administration"), nullptr);
  });
  return status;
}

void ChangeCall::End(const absl::Status& status, Message* response) {
  Answer(record_.Finish(status), response);
}

void ChangeCall::Answer(const absl::Status& status, Message* response) {
  if (!is_answered_.exchange(true)) call_->Finish(status, response);
}

}  // namespace sfmamba::call
