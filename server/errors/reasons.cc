#include "server/errors/reasons.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/errors/error.h"

namespace sfmamba::server {
namespace {

using Code = absl::StatusCode;
using Metadata = std::vector<std::pair<std::string, std::string>>;

// An error shows at most this many bytes of a name. Clients may send names that
// are nearly as long as the largest message.
constexpr size_t kMaxNameShown = 200;

absl::Status Error(Code code, absl::string_view reason,
                   absl::string_view message, Metadata metadata = {},
                   absl::Duration retry_after = absl::InfiniteDuration()) {
  ErrorDetail detail;
  detail.reason = std::string(reason);
  detail.retry_after = retry_after;
  detail.metadata = std::move(metadata);
  return MakeError(code, message, std::move(detail));
}

std::string Shown(absl::string_view name) {
  return std::string(base::Utf8Prefix(name, kMaxNameShown));
}

// Returns the words for a model with this task, such as "a detector".
absl::string_view ModelFor(absl::string_view task) {
  return task == "detection"      ? "a detector"
         : task == "segmentation" ? "a segmenter"
                                  : "a classifier";
}

absl::Status CallersQuota(absl::string_view client, absl::string_view message,
                          Metadata metadata, absl::Duration retry_after) {
  ErrorDetail detail;
  detail.reason = "CLIENT_QUOTA";
  detail.quota_subject = std::string(client);
  detail.retry_after = retry_after;
  detail.metadata = std::move(metadata);
  return MakeError(Code::kResourceExhausted, message, std::move(detail));
}

absl::Status AtStage(Code code, absl::string_view reason,
                     absl::string_view message, absl::string_view stage) {
  return Error(code, reason, absl::StrCat(message, ", stage: ", stage),
               {{"stage", std::string(stage)}});
}

}  // namespace

absl::Status MalformedMessage(absl::string_view message) {
  return Error(Code::kInvalidArgument, "MALFORMED_MESSAGE", message);
}

absl::Status InvalidField(absl::string_view field, absl::string_view message) {
  return AtField(field,
                 Error(Code::kInvalidArgument, "INVALID_FIELD", message));
}

absl::Status WrongText(absl::string_view field, absl::string_view got,
                       absl::string_view expected) {
  return InvalidField(
      field, absl::StrCat("got \"", Shown(got), "\", expected ", expected));
}

absl::Status OutOfRange(absl::string_view field, int64_t got, int64_t min,
                        int64_t max) {
  return InvalidField(
      field, absl::StrCat("got ", got, ", expected ", min, " to ", max));
}

absl::Status TooManyImages(int got, int64_t max) {
  return AtField(
      "images",
      Error(Code::kInvalidArgument, "TOO_MANY_IMAGES",
            absl::StrCat("got ", got, " images, expected 1 to ", max),
            {{"got", absl::StrCat(got)}, {"max", absl::StrCat(max)}}));
}

absl::Status TooManyTiles(int64_t got, int64_t max, int width, int height) {
  return Error(
      Code::kInvalidArgument, "TOO_MANY_TILES",
      absl::StrCat("the picture's tiles would be ", got,
                   " images for the network, expected at most ", max,
                   "; tiles of ", width, "x", height, " pixels would fit"),
      {{"got", absl::StrCat(got)},
       {"max", absl::StrCat(max)},
       {"width", absl::StrCat(width)},
       {"height", absl::StrCat(height)}});
}

absl::Status InputsTooLarge(int64_t bytes, int64_t max_bytes) {
  return AtField("images",
                 Error(Code::kInvalidArgument, "INPUTS_TOO_LARGE",
                       absl::StrCat("the images take ", bytes,
                                    " bytes of memory, expected at most ",
                                    max_bytes, "; send fewer at once"),
                       {{"bytes", absl::StrCat(bytes)},
                        {"max_bytes", absl::StrCat(max_bytes)}}));
}

absl::Status ImageFormatUnsupported(absl::string_view message) {
  return Error(Code::kInvalidArgument, "IMAGE_FORMAT_UNSUPPORTED", message);
}

absl::Status ImageDecodeFailed(absl::string_view message) {
  return Error(Code::kInvalidArgument, "IMAGE_DECODE_FAILED", message);
}

absl::Status ImageDecodeTimeout(absl::string_view message) {
  return Error(Code::kInvalidArgument, "IMAGE_DECODE_TIMEOUT", message);
}

absl::Status ImageTooLarge(absl::string_view message) {
  return Error(Code::kInvalidArgument, "IMAGE_TOO_LARGE", message);
}

absl::Status TaskMismatch(absl::string_view field, absl::string_view model,
                          absl::string_view got, absl::string_view expected) {
  return AtField(field, Error(Code::kFailedPrecondition, "TASK_MISMATCH",
                              absl::StrCat("got ", ModelFor(got), ", expected ",
                                           ModelFor(expected), "; ", model,
                                           " is for ", got),
                              {{"model", std::string(model)},
                               {"got", std::string(got)},
                               {"expected", std::string(expected)}}));
}

absl::Status TooManyLabels(absl::string_view model, int max) {
  return Error(
      Code::kFailedPrecondition, "TOO_MANY_LABELS",
      absl::StrCat(model, ": got ", max + 1, " labels, expected at most ", max,
                   "; remove one first"),
      {{"model", std::string(model)}, {"max", absl::StrCat(max)}});
}

absl::Status ModelControlOff() {
  return Error(Code::kFailedPrecondition, "MODEL_CONTROL_OFF",
               "model_control: got a value without \"explicit\", expected "
               "\"explicit\" or \"poll+explicit\" for calls that load or "
               "unload models");
}

absl::Status VersionInUse(absl::string_view model, absl::string_view label) {
  return Error(Code::kFailedPrecondition, "VERSION_IN_USE",
               absl::StrCat(model, ": has the label \"", label,
                            "\", expected none; move the label first"),
               {{"model", std::string(model)}, {"label", std::string(label)}});
}

absl::Status LoadFailed(absl::string_view model, absl::string_view message) {
  return Error(Code::kFailedPrecondition, "LOAD_FAILED",
               absl::StrCat(model, ": ", message),
               {{"model", std::string(model)}});
}

absl::Status ModelNotFound(absl::string_view name, absl::string_view hint) {
  return Error(Code::kNotFound, "MODEL_NOT_FOUND",
               absl::StrCat("there is no model \"", Shown(name), "\"", hint),
               {{"model", Shown(name)}});
}

absl::Status WithoutHint(const absl::Status& status) {
  return GetErrorDetail(status).reason == "MODEL_NOT_FOUND"
             ? ModelNotFound(GetMetadata("model", status))
             : status;
}

absl::Status NotSupported(absl::string_view what) {
  return Error(Code::kUnimplemented, "NOT_SUPPORTED",
               absl::StrCat(what, " is not supported"));
}

absl::Status Removed(absl::string_view what, absl::string_view instead) {
  return Error(Code::kUnimplemented, "NOT_SUPPORTED",
               absl::StrCat(what, " was removed: ", instead));
}

absl::Status TokenInvalid(absl::string_view got) {
  return Error(
      Code::kUnauthenticated, "TOKEN_INVALID",
      absl::StrCat("authorization: got ", got,
                   ", expected \"Bearer \" and a token of the token file"));
}

absl::Status ScopeMissing(absl::string_view client, absl::string_view scope,
                          absl::string_view expected) {
  return Error(
      Code::kPermissionDenied, "SCOPE_MISSING",
      absl::StrCat("authorization: ", client, " lacks the scope ", scope,
                   ", expected ", expected),
      {{"client", std::string(client)}, {"scope", std::string(scope)}});
}

absl::Status OriginRefused() {
  return Error(Code::kPermissionDenied, "ORIGIN_REFUSED",
               "got the header Origin, expected none: pages may not change "
               "what is served");
}

absl::Status QueueFull(absl::string_view queue, absl::string_view message,
                       absl::Duration retry_after) {
  return Error(Code::kResourceExhausted, "QUEUE_FULL", message,
               {{"queue", std::string(queue)}}, retry_after);
}

absl::Status ClientQuota(absl::string_view client, absl::string_view what,
                         absl::Duration retry_after) {
  return CallersQuota(
      client,
      absl::StrCat(client, " holds its share of ", what,
                   "; the rest is reserved for other clients"),
      {{"client", std::string(client)}, {"what", std::string(what)}},
      retry_after);
}

absl::Status OverQuota(absl::string_view client, absl::string_view what,
                       int64_t got, absl::string_view most,
                       absl::Duration retry_after) {
  return CallersQuota(
      client,
      absl::StrCat("the quota of ", client, ": got ", got,
                   " more images, expected at most ", most, " ", what),
      {{"client", std::string(client)},
       {"what", std::string(what)},
       {"max", std::string(most)}},
      retry_after);
}

absl::Status PredictedDeadlineMiss(absl::Duration wait,
                                   absl::Duration predicted,
                                   absl::Duration allowed) {
  const auto milliseconds = [](absl::Duration duration) {
    return absl::StrCat(absl::ToInt64Milliseconds(duration));
  };
  return Error(Code::kResourceExhausted, "PREDICTED_DEADLINE_MISS",
               absl::StrCat("the answer would take ", milliseconds(predicted),
                            " ms, of which it would wait ", milliseconds(wait),
                            " ms, and the deadline allows ",
                            milliseconds(allowed), " ms"),
               {{"predicted_wait_ms", milliseconds(wait)},
                {"predicted_ms", milliseconds(predicted)},
                {"allowed_ms", milliseconds(allowed)}});
}

absl::Status ResponseTooLarge(int64_t bytes, int64_t max_bytes,
                              absl::string_view smaller) {
  return Error(
      Code::kResourceExhausted, "RESPONSE_TOO_LARGE",
      absl::StrCat("the response has ", bytes,
                   " bytes or more, expected at most ", max_bytes,
                   "; smaller are ", smaller),
      {{"bytes", absl::StrCat(bytes)}, {"max_bytes", absl::StrCat(max_bytes)}});
}

absl::Status DeviceOutOfMemory(absl::Duration retry_after) {
  return Error(Code::kResourceExhausted, "DEVICE_OOM",
               "the device has no memory left for this image", {}, retry_after);
}

absl::Status Draining(absl::string_view what) {
  return Error(Code::kUnavailable, "DRAINING",
               absl::StrCat(what, " is stopping"), {}, absl::ZeroDuration());
}

absl::Status ModelNotReady(absl::string_view model, absl::string_view state,
                           absl::string_view reason) {
  return Error(
      Code::kUnavailable, "MODEL_NOT_READY",
      absl::StrCat(model, " is ", state, reason.empty() ? "" : ": ", reason),
      {{"model", std::string(model)}, {"state", std::string(state)}},
      state == "LOADING" ? absl::Seconds(1) : absl::InfiniteDuration());
}

absl::Status DeviceFailed(absl::string_view message) {
  return Error(Code::kUnavailable, "DEVICE_FAILED",
               absl::StrCat("the device has failed: ", message), {},
               absl::ZeroDuration());
}

absl::Status Expired(absl::string_view stage) {
  return AtStage(Code::kDeadlineExceeded, "EXPIRED_IN_QUEUE",
                 "the deadline leaves no time for an answer", stage);
}

absl::Status Cancelled(absl::string_view stage) {
  return AtStage(Code::kCancelled, "CANCELLED", "the caller has cancelled",
                 stage);
}

absl::Status NonFiniteOutput() {
  return Error(Code::kInternal, "NON_FINITE_OUTPUT",
               "the model's answer to this image is not finite");
}

absl::Status DeviceError(absl::string_view message) {
  return Error(Code::kInternal, "DEVICE_ERROR",
               absl::StrCat("the model failed: ", message));
}

}  // namespace sfmamba::server
