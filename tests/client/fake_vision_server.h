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

// A VisionService that runs in the process of the test and listens on its own
// port. A prediction request is a Classify, Detect or Segment call. Functions
// of the test answer such requests. The server is healthy from the start.
class FakeVisionServer {
 public:
  // Answers a request. Several threads may call it at once.
  template <typename Request, typename Response>
  using Handler =
      std::function<grpc::Status(const Request& request, Response* response)>;
  using Classify = Handler<v1::ClassifyRequest, v1::ClassifyResponse>;
  using Detect = Handler<v1::DetectRequest, v1::DetectResponse>;
  using Segment = Handler<v1::SegmentRequest, v1::SegmentResponse>;

  // If a function is null, its method returns UNIMPLEMENTED. If `port` is 0, a
  // free port is used.
  explicit FakeVisionServer(Classify classify, Detect detect = nullptr,
                            Segment segment = nullptr, int port = 0);
  ~FakeVisionServer();

  int port() const { return port_; }
  std::string address() const;  // "host:port".

  void SetHealthy(bool healthy);
  // Sets the models that ListModels returns, with one model per page.
  void SetModels(std::vector<v1::Model> models);

  // From now on, the server answers no prediction request. Such a request ends
  // only if the client cancels it or its deadline passes.
  void Hang();

  // Returns the number of prediction requests that have arrived.
  int call_count() const;
  // Returns the header "traceparent" of the last prediction request. Returns ""
  // if the request had no such header.
  std::string traceparent() const;
  // Returns the number of connections that sent prediction requests.
  int connection_count() const;
  // Waits until `count` prediction requests have arrived.
  void AwaitCallCount(int count) const;
  // Waits until `count` prediction requests were cancelled after Hang().
  void AwaitCancelledCount(int count) const;

 private:
  class Service;

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// Returns an error with the same details as an error of the real server.
grpc::Status FakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason, const std::string& field = "",
                       int retry_delay_seconds = 0);

// Answers each image with the category "cup". The response says that the images
// ran in batches of 4.
grpc::Status AnswerCup(const v1::ClassifyRequest& request,
                       v1::ClassifyResponse* response);

// Returns a model that is READY. Its input has 8 x 6 pixels and its classes are
// "cup" and "chair".
v1::Model FakeModel(const std::string& name);

}  // namespace sfmamba::client

#endif  // SFMAMBA_TESTS_CLIENT_FAKE_VISION_SERVER_H_
