#ifndef SFMAMBA_SERVER_ERRORS_REASONS_H_
#define SFMAMBA_SERVER_ERRORS_REASONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba::server {

// One constructor for each ErrorInfo.reason that a client may see, with the
// code and the metadata that belong to it. Reasons are stable: clients compare
// them. docs/serving.md lists them for users.

// ---- INVALID_ARGUMENT ----

// MALFORMED_MESSAGE: the message is no protobuf of its type.
absl::Status MalformedMessage(absl::string_view message);
// INVALID_FIELD. `field` is a BadRequest path such as "params.top_k".
absl::Status InvalidField(absl::string_view field, absl::string_view message);
// INVALID_FIELD: the text `got`, of which the error shows at most the first 200
// bytes.
absl::Status WrongText(absl::string_view field, absl::string_view got,
                       absl::string_view expected);
// INVALID_FIELD: an integer outside `min` to `max`.
absl::Status OutOfRange(absl::string_view field, int64_t got, int64_t min,
                        int64_t max);
// TOO_MANY_IMAGES, of field "images".
absl::Status TooManyImages(int got, int64_t max);
// TOO_MANY_TILES: a picture would become `got` images for the network; tiles of
// `width` x `height` pixels would fit.
absl::Status TooManyTiles(int64_t got, int64_t max, int width, int height);
// INPUTS_TOO_LARGE, of field "images": all images of a request together take
// more memory than a queue, or a request, may ever hold.
absl::Status InputsTooLarge(int64_t bytes, int64_t max_bytes);
// IMAGE_FORMAT_UNSUPPORTED: neither JPEG, PNG nor still WebP.
absl::Status ImageFormatUnsupported(absl::string_view message);
// IMAGE_DECODE_FAILED: the bytes are truncated or corrupt.
absl::Status ImageDecodeFailed(absl::string_view message);
// IMAGE_DECODE_TIMEOUT: decoding took longer than decode_timeout.
absl::Status ImageDecodeTimeout(absl::string_view message);
// IMAGE_TOO_LARGE: too many bytes or pixels, or too long a side.
absl::Status ImageTooLarge(absl::string_view message);

// ---- FAILED_PRECONDITION, NOT_FOUND, UNIMPLEMENTED ----

// TASK_MISMATCH: `model`, which `field` names or means, performs the task
// `got`. Tasks are "classification", "detection" and "segmentation".
absl::Status TaskMismatch(absl::string_view field, absl::string_view model,
                          absl::string_view got, absl::string_view expected);
// MODEL_CONTROL_OFF: calls do not load and unload models.
absl::Status ModelControlOff();
// VERSION_IN_USE: `model` is a version that has the label `label`.
absl::Status VersionInUse(absl::string_view model, absl::string_view label);
// LOAD_FAILED: `model`, a version, did not load because of `message`.
absl::Status LoadFailed(absl::string_view model, absl::string_view message);
// TOO_MANY_LABELS: `model` already has as many labels as a model may have.
absl::Status TooManyLabels(absl::string_view model, int max);
// MODEL_NOT_FOUND. The error shows at most the first 200 bytes of `name`, and
// behind it `hint`, which says what there is.
absl::Status ModelNotFound(absl::string_view name, absl::string_view hint = "");
// A MODEL_NOT_FOUND without its hint, for callers who may not ask which models
// there are. Other errors are returned as they are.
absl::Status WithoutHint(const absl::Status& status);
// NOT_SUPPORTED: `what` names a feature.
absl::Status NotSupported(absl::string_view what);
// NOT_SUPPORTED: `what` names a feature that earlier releases had, and
// `instead` says what to do in its place.
absl::Status Removed(absl::string_view what, absl::string_view instead);

// ---- UNAUTHENTICATED, PERMISSION_DENIED ----

// TOKEN_INVALID. `got` says what was wrong with the header `authorization`, and
// shows nothing of it.
absl::Status TokenInvalid(absl::string_view got);
// SCOPE_MISSING: `client` may not do what needs `scope`, such as "admin".
absl::Status ScopeMissing(absl::string_view client, absl::string_view scope,
                          absl::string_view expected);
// ORIGIN_REFUSED: a page in a browser asks for what pages may not do.
absl::Status OriginRefused();

// ---- RESOURCE_EXHAUSTED ----

// QUEUE_FULL, to be tried again after `retry_after`. `queue` says which one:
// "batch", "decode", "finish", "memory", or "drain" if more waits than a server
// that is stopped would end.
absl::Status QueueFull(absl::string_view queue, absl::string_view message,
                       absl::Duration retry_after);
// CLIENT_QUOTA, to be tried again after `retry_after`: `client` already holds
// all that one client may hold of `what`, such as "the places of the batch
// queue", while others may come.
absl::Status ClientQuota(absl::string_view client, absl::string_view what,
                         absl::Duration retry_after);
// CLIENT_QUOTA: with `got` more of `what`, such as "images at a time", `client`
// would have more than the `most` that its quota allows. Infinite
// `retry_after`: so many at once never fit.
absl::Status OverQuota(absl::string_view client, absl::string_view what,
                       int64_t got, absl::string_view most,
                       absl::Duration retry_after);
// PREDICTED_DEADLINE_MISS: a request that came now would wait for `wait` and be
// answered after `predicted`, but has only `allowed`. Another replica may be
// free.
absl::Status PredictedDeadlineMiss(absl::Duration wait,
                                   absl::Duration predicted,
                                   absl::Duration allowed);
// RESPONSE_TOO_LARGE. `smaller` says what makes responses smaller.
absl::Status ResponseTooLarge(int64_t bytes, int64_t max_bytes,
                              absl::string_view smaller);
// DEVICE_OOM, to be tried again after `retry_after`.
absl::Status DeviceOutOfMemory(absl::Duration retry_after);

// ---- UNAVAILABLE: another replica may answer at once ----

// DRAINING: `what`, such as "the server", is being stopped.
absl::Status Draining(absl::string_view what);
// MODEL_NOT_READY, to be retried after a second while the model is LOADING.
// `reason` may be empty.
absl::Status ModelNotReady(absl::string_view model, absl::string_view state,
                           absl::string_view reason);
// DEVICE_FAILED: this server's device has failed for good, so it is stopping.
absl::Status DeviceFailed(absl::string_view message);

// ---- DEADLINE_EXCEEDED, CANCELLED ----

// EXPIRED_IN_QUEUE: `stage` found that the deadline had passed, or would pass
// before the answer could be ready.
absl::Status Expired(absl::string_view stage);
// CANCELLED: the caller had gone when `stage` looked.
absl::Status Cancelled(absl::string_view stage);

// ---- INTERNAL ----

// NON_FINITE_OUTPUT: the model's answer has a NaN or an infinity.
absl::Status NonFiniteOutput();
// DEVICE_ERROR: the model failed on its device, which may still serve others.
absl::Status DeviceError(absl::string_view message);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_ERRORS_REASONS_H_
