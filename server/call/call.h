#ifndef SFMAMBA_SERVER_CALL_CALL_H_
#define SFMAMBA_SERVER_CALL_CALL_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "server/image/image_source.h"
#include "server/prediction/prediction_request.h"
#include "server/security/caller.h"

namespace sfmamba::call {

using google::protobuf::Message;

// Holds the images of a request. Their bytes stay in the buffers in which the
// transport (gRPC or HTTP) received them. Thread-compatible.
class Pictures {
 public:
  virtual ~Pictures() = default;

  // Returns OK if the request was parsed. Returns INVALID_ARGUMENT if the
  // request is malformed. May also return an error of the transport, for
  // example UNAVAILABLE while the server drains.
  const absl::Status& status() const { return status_; }
  void set_status(absl::Status status) { status_ = std::move(status); }
  // Returns OK, or the error of the images in a well-formed request. The error
  // is INVALID_ARGUMENT or UNIMPLEMENTED. Only a ModelInferRequest can have
  // such an error.
  const absl::Status& images_status() const { return images_status_; }
  // Returns the number of images in the request. If this number exceeds the
  // `max_images` of Call::ReadPictures(), the parsed message does not contain
  // all images.
  int count() const { return count_; }
  // Returns the number of bytes of memory that the request occupies.
  int64_t bytes() const { return bytes_; }

  // Replaces the index in `source` with the bytes of the image. The parsed
  // message contains such a small index in place of the bytes of each image.
  // `source` must be a part of the parsed message.
  virtual void SetBytes(image::ImageSource* source) = 0;
  // Frees the bytes. No view of the bytes may be used afterwards.
  virtual void Release() = 0;

 protected:
  absl::Status status_;
  absl::Status images_status_;
  int count_ = 0;
  int64_t bytes_ = 0;
};

// Encodes the repeated field `results` of a response. Each result is encoded
// separately, so several threads can encode different results concurrently. The
// encoded size is known before the response is sent.
//
// Thread-compatible. In addition, several threads may call Set() concurrently
// if each call has a different index.
class ResultSink {
 public:
  virtual ~ResultSink() = default;

  // Prepares `count` empty results. Must be called first.
  virtual void Start(int count) = 0;
  // Encodes result `i` and returns its encoded size in bytes.
  virtual int64_t Set(int i, const Message& result) = 0;
  // Returns the encoded size of the response in bytes. `rest` is the response
  // without its results.
  virtual int64_t Bytes(const Message& rest) const = 0;
};

// Represents one unary RPC of any transport and the obligation to answer the
// RPC. If a call is destroyed before Finish(), the client receives INTERNAL.
//
// Thread-compatible.
class Call {
 public:
  virtual ~Call() = default;

  // Returns information about the call, such as the deadline. CallInfo::caller
  // is certain to be set only after Admit() has returned OK.
  const prediction::CallInfo& info() const { return info_; }
  // Returns the size of the received request in bytes.
  virtual int64_t request_bytes() const = 0;

  // Returns UNAUTHENTICATED or PERMISSION_DENIED if the caller does not have
  // `scope`. May be called only once, and only before all other functions of
  // this object. MethodTable does not call Admit() if the RPC method needs no
  // scope.
  virtual absl::Status Admit(security::Scope scope) = 0;

  // The handler must call either Read() or ReadPictures(), and only once.
  //
  // Parses the request. Returns INVALID_ARGUMENT with reason MALFORMED_MESSAGE
  // if the request cannot be parsed. Returns UNAVAILABLE with reason DRAINING
  // if the transport accepts no new requests.
  virtual absl::Status Read(Message* request) = 0;
  // Like Read(), but the images' bytes stay in the received buffers. Never
  // returns null. Errors are in Pictures::status(). After an error, `request`
  // is empty.
  virtual std::unique_ptr<Pictures> ReadPictures(int max_images,
                                                 Message* request) = 0;

  // Registers the callback `cancelled`, which is called if the client
  // disconnects before the response is sent. `cancelled` is called at most
  // once, on any thread. OnCancel() may be called at most once, before the
  // handler returns.
  virtual void OnCancel(absl::AnyInvocable<void()> cancelled) = 0;

  // Returns the encoder of the response's repeated field `results`.
  virtual ResultSink& results() = 0;
  // Sends the response if `status` is OK. Otherwise sends the error. The
  // response consists of results() and `rest`. Finish() may move the contents
  // of `rest`. `rest` may be null if `status` is an error. Must be called
  // exactly once, on any thread. `sent` is called exactly once, on any thread,
  // when the response no longer occupies memory.
  virtual void Finish(
      const absl::Status& status, Message* rest,
      absl::AnyInvocable<void()> sent = [] {}) = 0;

 protected:
  prediction::CallInfo info_;
};

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_CALL_H_
