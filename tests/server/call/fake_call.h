#ifndef SFMAMBA_TESTS_SERVER_CALL_FAKE_CALL_H_
#define SFMAMBA_TESTS_SERVER_CALL_FAKE_CALL_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/call/call.h"
#include "server/call/encoded_results.h"
#include "server/rpc/call.h"
#include "server/rpc/wire/received_request.h"
#include "tests/testing/patience.h"

namespace sfmamba::call {

// Records how a FakeCall ended. Must outlive the call.
struct FakeEnding {
  // Waits until the call has ended and returns its status. Fails after a time
  // limit.
  const absl::Status& Wait() {
    WaitFor(ended, "the end of the call");
    return status;
  }

  absl::Notification ended;
  absl::Status status;
  // The serialized response if `status` is OK.
  std::string response;
  // A test calls this to say that the client has taken the response.
  absl::AnyInvocable<void()> sent;
  // A test calls this to say that the client has gone away.
  absl::AnyInvocable<void()> cancel;
};

// A call that needs no transport.
class FakeCall final : public Call {
 public:
  FakeCall(grpc::ByteBuffer request, FakeEnding* ending,
           absl::Status admitted = absl::OkStatus())
      : request_(std::move(request)),
        ending_(*ending),
        admitted_(std::move(admitted)) {
    info_.peer = "ipv4:127.0.0.1:1";
  }

  int64_t request_bytes() const override { return 1; }
  absl::Status Admit(security::Scope) override { return admitted_; }
  absl::Status Read(Message* request) override {
    return rpc::Parse(request_, request);
  }
  std::unique_ptr<Pictures> ReadPictures(int max_images,
                                         Message* request) override {
    return rpc::ReadPictures(&request_, max_images, request);
  }
  void OnCancel(absl::AnyInvocable<void()> cancelled) override {
    ending_.cancel = std::move(cancelled);
  }
  ResultSink& results() override { return results_; }
  void Finish(const absl::Status& status, Message* rest,
              absl::AnyInvocable<void()> sent) override {
    ending_.status = status;
    if (status.ok()) ending_.response = absl::StrJoin(results_.Take(*rest), "");
    ending_.sent = std::move(sent);
    ending_.ended.Notify();  // Notify() aborts if it is called twice.
  }

 private:
  grpc::ByteBuffer request_;
  FakeEnding& ending_;
  const absl::Status admitted_;
  EncodedResults results_;
};

}  // namespace sfmamba::call

#endif  // SFMAMBA_TESTS_SERVER_CALL_FAKE_CALL_H_
