#ifndef SFMAMBA_TESTS_CLIENT_FAKE_VISION_SERVER_H_
#define SFMAMBA_TESTS_CLIENT_FAKE_VISION_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server.h"
#include "sfmamba/v1/vision.grpc.pb.h"

namespace sfmamba::client {

// A VisionService in this process, on a port of its own, whose predictions are
// answered as the test says. Healthy from the start.
class FakeVisionServer {
 public:
  // May be called on several threads at once.
  template <typename Request, typename Response>
  using Handler =
      std::function<grpc::Status(const Request& request, Response* response)>;
  using Classify = Handler<v1::ClassifyRequest, v1::ClassifyResponse>;
  using Detect = Handler<v1::DetectRequest, v1::DetectResponse>;
  using Segment = Handler<v1::SegmentRequest, v1::SegmentResponse>;

  // A null handler's method is UNIMPLEMENTED. Port 0: a free one.
  explicit FakeVisionServer(Classify classify, Detect detect = nullptr,
                            Segment segment = nullptr, int port = 0);
  ~FakeVisionServer();

  int port() const { return port_; }
  std::string address() const;  // "host:port".

  void SetHealthy(bool healthy);
  void SetModels(std::vector<v1::Model> models);  // Listed one a page.

  // From now on predictions end only by the client's cancellation or deadline.
  void Hang();

  int call_count() const;           // Predictions begun.
  std::string traceparent() const;  // The last prediction's; empty: none.
  int connection_count() const;     // Connections that they came over.
  void AwaitCallCount(int count) const;
  void AwaitCancelledCount(
      int count) const;  // Calls that hung and were cancelled.

 private:
  class Service;

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// An error with the details that the real server sends.
grpc::Status FakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason, const std::string& field = "",
                       int retry_delay_seconds = 0);

// Answers every image with the category "cup" and a timing of batches of 4.
grpc::Status AnswerCup(const v1::ClassifyRequest& request,
                       v1::ClassifyResponse* response);

// READY, input 8x6, classes "cup" and "chair".
v1::Model FakeModel(const std::string& name);

}  // namespace sfmamba::client

#endif  // SFMAMBA_TESTS_CLIENT_FAKE_VISION_SERVER_H_
