#ifndef SFMAMBA_SERVER_ERRORS_REASONS_H_
#define SFMAMBA_SERVER_ERRORS_REASONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba::server {

// Functions that create errors with an ErrorInfo.reason. The comment of each
// function starts with the reason. Each function also sets the status code and
// the metadata. Reasons are part of the API and must not change, because
// clients compare reasons. docs/serving.md lists the reasons for users.

// ---- INVALID_ARGUMENT ----

// MALFORMED_MESSAGE. The message is not a valid protobuf of its type.
absl::Status MalformedMessage(absl::string_view message);
// INVALID_FIELD. `field` is the path of the field for google.rpc.BadRequest,
// such as "params.top_k".
absl::Status InvalidField(absl::string_view field, absl::string_view message);
// INVALID_FIELD for the value `got`. The error contains at most the first 200
// bytes of `got`.
absl::Status WrongText(absl::string_view field, absl::string_view got,
                       absl::string_view expected);
// INVALID_FIELD for an integer outside `min` to `max`.
absl::Status OutOfRange(absl::string_view field, int64_t got, int64_t min,
                        int64_t max);
// TOO_MANY_IMAGES for the field "images". The request has `got` images or
// tiles, but only `max` are allowed.
absl::Status TooManyImages(int got, int64_t max);
// TOO_MANY_TILES. The tiles of a picture would become `got` model inputs, but
// only `max` are allowed. The error recommends tiles of `width` x `height`
// pixels. The picture would then need at most `max` model inputs.
absl::Status TooManyTiles(int64_t got, int64_t max, int width, int height);
// INPUTS_TOO_LARGE for the field "images". The request needs `bytes` bytes of
// memory, but a single request may need at most `max_bytes`.
absl::Status InputsTooLarge(int64_t bytes, int64_t max_bytes);
// IMAGE_FORMAT_UNSUPPORTED. The image is not a JPEG, a PNG or a still WebP.
absl::Status ImageFormatUnsupported(absl::string_view message);
// IMAGE_DECODE_FAILED. The bytes are truncated or corrupt.
absl::Status ImageDecodeFailed(absl::string_view message);
// IMAGE_DECODE_TIMEOUT. Decoding took longer than decode_timeout.
absl::Status ImageDecodeTimeout(absl::string_view message);
// IMAGE_TOO_LARGE. The image has too many bytes or pixels, or a side is too
// long.
absl::Status ImageTooLarge(absl::string_view message);

// ---- FAILED_PRECONDITION, NOT_FOUND, UNIMPLEMENTED ----

// TASK_MISMATCH. `field` names the field of the request that selects `model`.
// This model has the task `got`, but the request needs the task `expected`. The
// tasks are "classification", "detection" and "segmentation".
absl::Status TaskMismatch(absl::string_view field, absl::string_view model,
                          absl::string_view got, absl::string_view expected);
// MODEL_CONTROL_OFF. The server's settings do not allow calls to load or unload
// models.
absl::Status ModelControlOff();
// VERSION_IN_USE. The model version named `model` cannot be unloaded, because
// it has the label `label`.
absl::Status VersionInUse(absl::string_view model, absl::string_view label);
// LOAD_FAILED. The model version named `model` did not load. `message` says
// why.
absl::Status LoadFailed(absl::string_view model, absl::string_view message);
// TOO_MANY_LABELS. `model` already has the maximum number of labels.
absl::Status TooManyLabels(absl::string_view model, int max);
// MODEL_NOT_FOUND. The error shows at most the first 200 bytes of `name`,
// followed by `hint`. A hint usually lists the models that exist.
absl::Status ModelNotFound(absl::string_view name, absl::string_view hint = "");
// Removes the hint from a MODEL_NOT_FOUND error, for callers who may not list
// models. Returns other errors unchanged.
absl::Status WithoutHint(const absl::Status& status);
// NOT_SUPPORTED. `what` names the feature that is not supported.
absl::Status NotSupported(absl::string_view what);
// NOT_SUPPORTED for a feature of earlier releases. `what` names the feature,
// and `instead` names the replacement.
absl::Status Removed(absl::string_view what, absl::string_view instead);

// ---- UNAUTHENTICATED, PERMISSION_DENIED ----

// TOKEN_INVALID. `got` describes the error in the header `authorization`
// without quoting the header.
absl::Status TokenInvalid(absl::string_view got);
// SCOPE_MISSING. `client` does not have the scope `scope`, such as "admin".
// `expected` says what the server would accept, for example a token with this
// scope.
absl::Status ScopeMissing(absl::string_view client, absl::string_view scope,
                          absl::string_view expected);
// ORIGIN_REFUSED. A web page tried to change the models or settings of the
// server.
absl::Status OriginRefused();

// ---- RESOURCE_EXHAUSTED ----

// QUEUE_FULL with the retry delay `retry_after`. The request would exceed a
// limit. `queue` names what is limited:
//   "batch"   images that wait for a batch
//   "decode"  images that wait for a decode thread
//   "finish"  answers that wait to be encoded
//   "memory"  the memory that requests hold (the memory budget)
//   "drain"   the predicted time until all images of the client are done,
//             including the new images (the limit is drain_timeout)
//   "load"    calls that load or unload models
absl::Status QueueFull(absl::string_view queue, absl::string_view message,
                       absl::Duration retry_after);
// CLIENT_QUOTA with the retry delay `retry_after`. `client` already uses its
// maximum share of a resource. The remainder of the resource is reserved for
// other clients. `what` names the resource, such as "the places of the batch
// queue".
absl::Status ClientQuota(absl::string_view client, absl::string_view what,
                         absl::Duration retry_after);
// CLIENT_QUOTA. `client` has sent a request with `got` images, which would
// exceed the quota of the client. `what` names the quota, such as "images at a
// time", and `most` is the limit. `retry_after` is the retry delay. It must be
// infinite if the request would exceed the quota even without other requests.
// A retry could then never succeed, and the error contains no retry delay.
absl::Status OverQuota(absl::string_view client, absl::string_view what,
                       int64_t got, absl::string_view most,
                       absl::Duration retry_after);
// PREDICTED_DEADLINE_MISS. The server predicts that a new request would wait
// for `wait` and be answered after `predicted`. The time until the request's
// deadline is only `allowed`. Another replica may be less busy.
absl::Status PredictedDeadlineMiss(absl::Duration wait,
                                   absl::Duration predicted,
                                   absl::Duration allowed);
// RESPONSE_TOO_LARGE. The response has at least `bytes` bytes, but only
// `max_bytes` are allowed. `smaller` tells the client how to get a smaller
// response, for example with "fewer images".
absl::Status ResponseTooLarge(int64_t bytes, int64_t max_bytes,
                              absl::string_view smaller);
// DEVICE_OOM with the retry delay `retry_after`. The device does not have
// enough free memory.
absl::Status DeviceOutOfMemory(absl::Duration retry_after);

// ---- UNAVAILABLE: another replica may be able to answer ----

// DRAINING. `what` is shutting down, for example "the server".
absl::Status Draining(absl::string_view what);
// MODEL_NOT_READY. `model` is in the state `state` for the reason `reason`,
// which may be empty. The retry delay is one second if the state is LOADING. In
// other states, there is no retry delay.
absl::Status ModelNotReady(absl::string_view model, absl::string_view state,
                           absl::string_view reason);
// DEVICE_FAILED. The server is shutting down, because its device has failed
// permanently.
absl::Status DeviceFailed(absl::string_view message);

// ---- DEADLINE_EXCEEDED, CANCELLED ----

// EXPIRED_IN_QUEUE. The deadline has passed, or the answer cannot be ready
// before the deadline. `stage` names the stage in which the server noticed
// this, such as "queue".
absl::Status Expired(absl::string_view stage);
// CANCELLED. The caller has cancelled. `stage` names the stage in which the
// server noticed this, such as "queue".
absl::Status Cancelled(absl::string_view stage);

// ---- INTERNAL ----

// NON_FINITE_OUTPUT. The model's output contains a NaN or an infinity.
absl::Status NonFiniteOutput();
// DEVICE_ERROR. The model failed on its device. The device may still work for
// other requests.
absl::Status DeviceError(absl::string_view message);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_ERRORS_REASONS_H_
