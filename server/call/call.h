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

// The bytes of a request's images, in the memory that the transport received
// them in. Thread-compatible.
class Pictures {
 public:
  virtual ~Pictures() = default;

  // INVALID_ARGUMENT if the request is malformed, or an error of the
  // transport.
  const absl::Status& status() const { return status_; }
  void set_status(absl::Status status) { status_ = std::move(status); }
  // INVALID_ARGUMENT, or UNIMPLEMENTED, if the request is well-formed but its
  // images are not. Only a ModelInferRequest has such errors.
  const absl::Status& images_status() const { return images_status_; }
  // How many images the request has. If there are more than were allowed, the
  // message lacks some of them.
  int count() const { return count_; }
  // The bytes of memory that the request takes.
  int64_t bytes() const { return bytes_; }

  // The message has an index in place of each image's bytes. Replaces the index
  // in `source`, which was made of such an image, by the bytes.
  virtual void SetBytes(image::ImageSource* source) = 0;
  // Frees the bytes. No view of them is used any more.
  virtual void Release() = 0;

 protected:
  absl::Status status_;
  absl::Status images_status_;
  int count_ = 0;
  int64_t bytes_ = 0;
};

// A response with the repeated field `results`, which is encoded result by
// result, so that many threads encode it and its size is known in time.
// Thread-compatible, but results of different images may be set concurrently.
class ResultSink {
 public:
  virtual ~ResultSink() = default;

  // Called first. The results are empty until they are set.
  virtual void Start(int count) = 0;
  // Returns the bytes that the result takes in the response.
  virtual int64_t Set(int i, const Message& result) = 0;
  // Returns the bytes of the response. `rest` is the response without results.
  virtual int64_t Bytes(const Message& rest) const = 0;
};

// The obligation to answer one RPC with one request and one response, whatever
// transport it came by. A call that is destroyed before Finish() answers
// INTERNAL.
//
// Thread-compatible.
class Call {
 public:
  virtual ~Call() = default;

  // The caller is known once the call is admitted. The deadline is known once
  // the request is read.
  const prediction::CallInfo& info() const { return info_; }
  // The bytes of the request as it was received.
  virtual int64_t request_bytes() const = 0;

  // UNAUTHENTICATED or PERMISSION_DENIED unless the caller has `scope`. Called
  // first, once.
  virtual absl::Status Admit(security::Scope scope) = 0;

  // One of these two is called, once.
  //
  // Parses the request. INVALID_ARGUMENT, MALFORMED_MESSAGE, if it cannot be
  // parsed. UNAVAILABLE, DRAINING, if the transport accepts no new requests.
  virtual absl::Status Read(Message* request) = 0;
  // Like Read(), but leaves the images' bytes where they were received. Reports
  // the error in what it returns, which is not null. `request` is empty then.
  virtual std::unique_ptr<Pictures> ReadPictures(int max_images,
                                                 Message* request) = 0;

  // `cancelled` runs at most once, on any thread, if the client goes away
  // before the response is sent. Called at most once, by the handler before it
  // returns.
  virtual void OnCancel(absl::AnyInvocable<void()> cancelled) = 0;

  // Encodes the response's results, if it has any.
  virtual ResultSink& results() = 0;
  // Sends the results and `rest` if `status` is OK, else the error. `rest` may
  // be null if `status` is an error, and may be moved from. Called exactly
  // once, by any thread. `sent` runs exactly once, on any thread, when the
  // response has left memory.
  virtual void Finish(
      const absl::Status& status, Message* rest,
      absl::AnyInvocable<void()> sent = [] {}) = 0;

 protected:
  prediction::CallInfo info_;
};

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_CALL_H_
