#include "server/errors/reasons.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/errors/error.h"

namespace sfmamba::server {
namespace {

// Names come from clients and may be as long as the message limit allows.
constexpr size_t kMaxNameShown = 200;

ErrorDetail WithReason(absl::string_view reason) {
  ErrorDetail detail;
  detail.reason = std::string(reason);
  return detail;
}

absl::Status InvalidArgument(absl::string_view reason,
                             absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, message,
                   WithReason(reason));
}

absl::Status AtStage(absl::StatusCode code, absl::string_view reason,
                     absl::string_view message, absl::string_view stage) {
  ErrorDetail detail = WithReason(reason);
  detail.metadata = {{"stage", std::string(stage)}};
  return MakeError(code, absl::StrCat(message, ", stage: ", stage),
                   std::move(detail));
}

}  // namespace

absl::Status MalformedMessage(absl::string_view message) {
  return InvalidArgument("MALFORMED_MESSAGE", message);
}

absl::Status InvalidField(absl::string_view field, absl::string_view message) {
  ErrorDetail detail = WithReason("INVALID_FIELD");
  detail.field = std::string(field);
  return MakeError(absl::StatusCode::kInvalidArgument, message,
                   std::move(detail));
}

absl::Status WrongText(absl::string_view field, absl::string_view got,
                       absl::string_view expected) {
  return InvalidField(
      field, absl::StrCat("got \"", base::Utf8Prefix(got, kMaxNameShown),
                          "\", expected ", expected));
}

absl::Status OutOfRange(absl::string_view field, int64_t got, int64_t min,
                        int64_t max) {
  return InvalidField(
      field, absl::StrCat("got ", got, ", expected ", min, " to ", max));
}

absl::Status TooManyImages(int got, int64_t max) {
  ErrorDetail detail = WithReason("TOO_MANY_IMAGES");
  detail.field = "images";
  detail.metadata = {{"got", absl::StrCat(got)}, {"max", absl::StrCat(max)}};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("got ", got, " images, expected 1 to ", max),
                   std::move(detail));
}

absl::Status InputsTooLarge(int64_t bytes, int64_t max_bytes) {
  ErrorDetail detail = WithReason("INPUTS_TOO_LARGE");
  detail.field = "images";
  detail.metadata = {{"bytes", absl::StrCat(bytes)},
                     {"max_bytes", absl::StrCat(max_bytes)}};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("the images take ", bytes,
                                " bytes of memory, expected at most ",
                                max_bytes, "; send fewer at once"),
                   std::move(detail));
}

absl::Status ImageFormatUnsupported(absl::string_view message) {
  return InvalidArgument("IMAGE_FORMAT_UNSUPPORTED", message);
}

absl::Status ImageDecodeFailed(absl::string_view message) {
  return InvalidArgument("IMAGE_DECODE_FAILED", message);
}

absl::Status ImageDecodeTimeout(absl::string_view message) {
  return InvalidArgument("IMAGE_DECODE_TIMEOUT", message);
}

absl::Status ImageTooLarge(absl::string_view message) {
  return InvalidArgument("IMAGE_TOO_LARGE", message);
}

absl::Status TaskMismatch(absl::string_view model, absl::string_view got,
                          absl::string_view expected) {
  ErrorDetail detail = WithReason("TASK_MISMATCH");
  detail.metadata = {{"model", std::string(model)},
                     {"got", std::string(got)},
                     {"expected", std::string(expected)}};
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat(model, ": got ", got, ", expected ", expected),
                   std::move(detail));
}

absl::Status ModelControlOff() {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   "model_control: got it without \"explicit\", expected "
                   "\"explicit\" or \"poll+explicit\" where calls load or "
                   "unload models",
                   WithReason("MODEL_CONTROL_OFF"));
}

absl::Status VersionInUse(absl::string_view model, absl::string_view label) {
  ErrorDetail detail = WithReason("VERSION_IN_USE");
  detail.metadata = {{"model", std::string(model)},
                     {"label", std::string(label)}};
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat(model, ": has the label \"", label,
                                "\", expected none; move the label first"),
                   std::move(detail));
}

absl::Status LoadFailed(absl::string_view model, absl::string_view message) {
  ErrorDetail detail = WithReason("LOAD_FAILED");
  detail.metadata = {{"model", std::string(model)}};
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat(model, ": ", message), std::move(detail));
}

absl::Status ModelNotFound(absl::string_view name) {
  const std::string shown(base::Utf8Prefix(name, kMaxNameShown));
  ErrorDetail detail = WithReason("MODEL_NOT_FOUND");
  detail.metadata = {{"model", shown}};
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("there is no model \"", shown, "\""),
                   std::move(detail));
}

absl::Status NotSupported(absl::string_view what) {
  return MakeError(absl::StatusCode::kUnimplemented,
                   absl::StrCat(what, " is not supported"),
                   WithReason("NOT_SUPPORTED"));
}

absl::Status TokenInvalid(absl::string_view got) {
  return MakeError(
      absl::StatusCode::kUnauthenticated,
      absl::StrCat("authorization: got ", got,
                   ", expected \"Bearer \" and a token of the token file"),
      WithReason("TOKEN_INVALID"));
}

absl::Status ScopeMissing(absl::string_view client, absl::string_view scope,
                          absl::string_view expected) {
  ErrorDetail detail = WithReason("SCOPE_MISSING");
  detail.metadata = {{"client", std::string(client)},
                     {"scope", std::string(scope)}};
  return MakeError(
      absl::StatusCode::kPermissionDenied,
      absl::StrCat("authorization: got a call of ", client,
                   ", which needs the scope ", scope, "; expected ", expected),
      std::move(detail));
}

absl::Status OriginRefused() {
  return MakeError(absl::StatusCode::kPermissionDenied,
                   "got the header Origin, expected none: pages may not "
                   "change what is served",
                   {"ORIGIN_REFUSED"});
}

absl::Status QueueFull(absl::string_view queue, absl::string_view message,
                       absl::Duration retry_after) {
  ErrorDetail detail = WithReason("QUEUE_FULL");
  detail.metadata = {{"queue", std::string(queue)}};
  detail.retry_after = retry_after;
  return MakeError(absl::StatusCode::kResourceExhausted, message,
                   std::move(detail));
}

absl::Status ClientQuota(absl::string_view client, absl::string_view what,
                         absl::Duration retry_after) {
  ErrorDetail detail = WithReason("CLIENT_QUOTA");
  detail.quota_subject = std::string(client);
  detail.metadata = {{"client", std::string(client)},
                     {"what", std::string(what)}};
  detail.retry_after = retry_after;
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat(client, " holds its share of ", what,
                                "; what is left is for other clients"),
                   std::move(detail));
}

absl::Status OverQuota(absl::string_view client, absl::string_view what,
                       int64_t got, absl::string_view most,
                       absl::Duration retry_after) {
  ErrorDetail detail = WithReason("CLIENT_QUOTA");
  detail.quota_subject = std::string(client);
  detail.metadata = {{"client", std::string(client)},
                     {"what", std::string(what)},
                     {"max", std::string(most)}};
  detail.retry_after = retry_after;
  return MakeError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the quota of ", client, ": got ", got,
                   " more images, expected at most ", most, " ", what),
      std::move(detail));
}

absl::Status PredictedDeadlineMiss(absl::Duration wait,
                                   absl::Duration predicted,
                                   absl::Duration allowed) {
  const auto milliseconds = [](absl::Duration duration) {
    return absl::StrCat(absl::ToInt64Milliseconds(duration));
  };
  ErrorDetail detail = WithReason("PREDICTED_DEADLINE_MISS");
  detail.metadata = {{"predicted_wait_ms", milliseconds(wait)},
                     {"predicted_ms", milliseconds(predicted)},
                     {"allowed_ms", milliseconds(allowed)}};
  return MakeError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the answer would take ", milliseconds(predicted),
                   " ms, of which it would wait ", milliseconds(wait),
                   " ms, and the deadline allows ", milliseconds(allowed),
                   " ms"),
      std::move(detail));
}

absl::Status ResponseTooLarge(int64_t bytes, int64_t max_bytes,
                              absl::string_view smaller) {
  ErrorDetail detail = WithReason("RESPONSE_TOO_LARGE");
  detail.metadata = {{"bytes", absl::StrCat(bytes)},
                     {"max_bytes", absl::StrCat(max_bytes)}};
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat("the response has ", bytes,
                                " bytes or more, expected at most ", max_bytes,
                                "; smaller are ", smaller),
                   std::move(detail));
}

absl::Status DeviceOutOfMemory(absl::Duration retry_after) {
  ErrorDetail detail = WithReason("DEVICE_OOM");
  detail.retry_after = retry_after;
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "the device has no memory left for this image",
                   std::move(detail));
}

absl::Status Draining(absl::string_view what) {
  ErrorDetail detail = WithReason("DRAINING");
  detail.retry_after = absl::ZeroDuration();
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat(what, " is stopping"), std::move(detail));
}

absl::Status ModelNotReady(absl::string_view model, absl::string_view state,
                           absl::string_view reason) {
  ErrorDetail detail = WithReason("MODEL_NOT_READY");
  detail.metadata = {{"model", std::string(model)},
                     {"state", std::string(state)}};
  return MakeError(
      absl::StatusCode::kUnavailable,
      absl::StrCat(model, " is ", state, reason.empty() ? "" : ": ", reason),
      std::move(detail));
}

absl::Status DeviceFailed(absl::string_view message) {
  ErrorDetail detail = WithReason("DEVICE_FAILED");
  detail.retry_after = absl::ZeroDuration();
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat("the device has failed: ", message),
                   std::move(detail));
}

absl::Status Expired(absl::string_view stage) {
  return AtStage(absl::StatusCode::kDeadlineExceeded, "EXPIRED_IN_QUEUE",
                 "the deadline leaves no time for an answer", stage);
}

absl::Status Cancelled(absl::string_view stage) {
  return AtStage(absl::StatusCode::kCancelled, "CANCELLED",
                 "the caller has cancelled", stage);
}

absl::Status NonFiniteOutput() {
  return MakeError(absl::StatusCode::kInternal,
                   "the model's answer to this image is not finite",
                   WithReason("NON_FINITE_OUTPUT"));
}

absl::Status DeviceError(absl::string_view message) {
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrCat("the model failed: ", message),
                   WithReason("DEVICE_ERROR"));
}

}  // namespace sfmamba::server
