#include "client/rpc/vision_client.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/rpc/rpc_status.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/client/fake_vision_server.h"
#include "tests/testing/certificates.h"
#include "tests/testing/patience.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::Property;
using HealthStatus = grpc::health::v1::HealthCheckResponse;

constexpr absl::Duration kTimeout = absl::Seconds(30);

v1::ClassifyRequest RequestWithBytes(size_t size) {
  v1::ClassifyRequest request;
  request.add_images()->set_encoded(std::string(size, 'x'));
  return request;
}

// Answers the first `failures` calls with `error`, and later calls with a cup.
FakeVisionServer::Classify FailFirst(int failures, grpc::Status error) {
  auto calls = std::make_shared<std::atomic<int>>(0);
  return
      [=](const v1::ClassifyRequest& request, v1::ClassifyResponse* response) {
        return (*calls)++ < failures ? error : AnswerCup(request, response);
      };
}

const grpc::Status kUnavailable(grpc::StatusCode::UNAVAILABLE, "draining");

TEST(VisionClientTest, ClassifyReturnsTheAnswer) {
  FakeVisionServer server(AnswerCup);
  VisionClient client(server.address());
  const auto response = client.Classify(RequestWithBytes(3), kTimeout);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->results(0).categories(0).label(), "cup");
}

TEST(VisionClientTest, DetectAndSegmentReturnTheirAnswers) {
  FakeVisionServer server(
      nullptr,
      [](const v1::DetectRequest& request, v1::DetectResponse* response) {
        response->add_results()->set_image_width(request.images_size());
        return grpc::Status::OK;
      },
      [](const v1::SegmentRequest& request, v1::SegmentResponse* response) {
        response->add_results()->set_height(request.images_size());
        return grpc::Status::OK;
      });
  VisionClient client(server.address());
  v1::DetectRequest detect;
  detect.add_images();
  v1::SegmentRequest segment;
  segment.add_images();
  segment.add_images();

  const auto detected = client.Detect(detect, kTimeout);
  ASSERT_TRUE(detected.ok()) << detected.status();
  EXPECT_EQ(detected->results(0).image_width(), 1);
  const auto segmented = client.Segment(segment, kTimeout);
  ASSERT_TRUE(segmented.ok()) << segmented.status();
  EXPECT_EQ(segmented->results(0).height(), 2);

  absl::Notification both[2];
  client.Detect(detect, kTimeout,
                [&](absl::StatusOr<v1::DetectResponse> response) {
                  EXPECT_TRUE(response.ok()) << response.status();
                  EXPECT_EQ(response->results(0).image_width(), 1);
                  both[0].Notify();
                });
  client.Segment(segment, kTimeout,
                 [&](absl::StatusOr<v1::SegmentResponse> response) {
                   EXPECT_TRUE(response.ok()) << response.status();
                   EXPECT_EQ(response->results(0).height(), 2);
                   both[1].Notify();
                 });
  for (absl::Notification& done : both) WaitFor(done, "an answer");

  // The second server does not have these methods.
  FakeVisionServer classifier(AnswerCup);
  VisionClient other(classifier.address());
  EXPECT_EQ(other.Detect(detect, kTimeout).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(other.Segment(segment, kTimeout).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(VisionClientTest, AnErrorCarriesItsDetails) {
  FakeVisionServer server(FailFirst(
      1, FakeError(grpc::StatusCode::INVALID_ARGUMENT, "images[0]: not a JPEG",
                   "IMAGE_FORMAT_UNSUPPORTED", "images[0].encoded")));
  VisionClient client(server.address());
  const auto response = client.Classify(RequestWithBytes(3), kTimeout);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kInvalidArgument);
  const RpcErrorDetails details = GetRpcErrorDetails(response.status());
  EXPECT_EQ(details.reason, "IMAGE_FORMAT_UNSUPPORTED");
  EXPECT_THAT(details.fields, ElementsAre("images[0].encoded"));
}

TEST(VisionClientTest, UnavailableIsRetriedTwice) {
  FakeVisionServer server(FailFirst(2, kUnavailable));
  VisionClient client(server.address());
  EXPECT_TRUE(client.Classify(RequestWithBytes(3), kTimeout).ok());
  EXPECT_EQ(server.call_count(), 3);
}

TEST(VisionClientTest, UnavailableIsReportedAfterThreeAttempts) {
  FakeVisionServer server(FailFirst(100, kUnavailable));
  VisionClient client(server.address());
  EXPECT_EQ(client.Classify(RequestWithBytes(3), kTimeout).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(server.call_count(), 3);
}

TEST(VisionClientTest, NothingIsRetriedWhereOptionsForbidIt) {
  FakeVisionServer server(FailFirst(1, kUnavailable));
  VisionClientOptions options;
  options.retry = false;
  VisionClient client(server.address(), options);
  EXPECT_EQ(client.Classify(RequestWithBytes(3), kTimeout).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(server.call_count(), 1);
}

TEST(VisionClientTest, ACallThatAStoppingServerCancelsIsRetried) {
  FakeVisionServer server(FailFirst(1, grpc::Status::CANCELLED));
  VisionClient client(server.address());
  EXPECT_TRUE(client.Classify(RequestWithBytes(3), kTimeout).ok());
  EXPECT_EQ(server.call_count(), 2);
}

TEST(VisionClientTest, ExhaustedIsRetriedWhereOptionsAskForIt) {
  for (const bool retry : {true, false}) {
    FakeVisionServer server(FailFirst(
        1, grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full")));
    VisionClientOptions options;
    options.retry_exhausted = retry;
    VisionClient client(server.address(), options);
    EXPECT_EQ(client.Classify(RequestWithBytes(3), kTimeout).ok(), retry);
    EXPECT_EQ(server.call_count(), retry ? 2 : 1);
  }
}

TEST(VisionClientTest, ClientsShareAConnectionUnlessOptionsForbidIt) {
  for (const bool share : {true, false}) {
    FakeVisionServer server(AnswerCup);
    VisionClientOptions options;
    options.share_connections = share;
    VisionClient a(server.address(), options), b(server.address(), options);
    for (VisionClient* client : {&a, &b, &a, &b}) {
      EXPECT_TRUE(client->Classify(RequestWithBytes(3), kTimeout).ok());
    }
    EXPECT_EQ(server.connection_count(), share ? 1 : 2);
  }
}

TEST(VisionClientTest, ConnectsToAHealthyServerAlone) {
  FakeVisionServer server(AnswerCup);
  EXPECT_TRUE(VisionClient(server.address()).Connect(kTimeout).ok());
  server.SetHealthy(false);
  EXPECT_EQ(VisionClient(server.address()).Connect(kTimeout).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(VisionClient("127.0.0.1:1").Connect(kTimeout).code(),
            absl::StatusCode::kUnavailable);
}

TEST(VisionClientTest, OfAListOfAddressesThoseThatAnswerAreAsked) {
  std::atomic<int> first_asked{0}, second_asked{0};
  const auto counting = [](std::atomic<int>* asked) {
    return [asked](const v1::ClassifyRequest& request,
                   v1::ClassifyResponse* response) {
      ++*asked;
      return AnswerCup(request, response);
    };
  };
  FakeVisionServer first(counting(&first_asked));
  FakeVisionServer second(counting(&second_asked));
  // No process listens on port 1.
  VisionClient client("ipv4:" + first.address() + ",127.0.0.1:1," +
                      second.address());
  const TimeLimit limit("answers of both servers");
  while (first_asked == 0 || second_asked == 0) {
    EXPECT_TRUE(client.Classify(RequestWithBytes(3), kTimeout).ok());
  }
}

TEST(VisionClientTest, ALargeRequestIsRetriedToo) {
  FakeVisionServer server(FailFirst(1, kUnavailable));
  VisionClient client(server.address());
  EXPECT_TRUE(client.Classify(RequestWithBytes(3 << 20), kTimeout).ok());
  EXPECT_EQ(server.call_count(), 2);
}

class NotRetriedTest : public testing::TestWithParam<grpc::StatusCode> {};

TEST_P(NotRetriedTest, IsReportedAtOnce) {
  FakeVisionServer server(FailFirst(1, FakeError(GetParam(), "no", "REASON")));
  VisionClient client(server.address());
  EXPECT_EQ(static_cast<int>(
                client.Classify(RequestWithBytes(3), kTimeout).status().code()),
            static_cast<int>(GetParam()));
  EXPECT_EQ(server.call_count(), 1);
}

INSTANTIATE_TEST_SUITE_P(Codes, NotRetriedTest,
                         testing::Values(grpc::StatusCode::INVALID_ARGUMENT,
                                         grpc::StatusCode::NOT_FOUND,
                                         grpc::StatusCode::RESOURCE_EXHAUSTED,
                                         grpc::StatusCode::FAILED_PRECONDITION,
                                         grpc::StatusCode::DEADLINE_EXCEEDED,
                                         grpc::StatusCode::INTERNAL,
                                         grpc::StatusCode::ABORTED,
                                         grpc::StatusCode::UNIMPLEMENTED));

TEST(VisionClientTest, CancelEndsTheCallOnBothSides) {
  FakeVisionServer server(AnswerCup);
  server.Hang();
  VisionClient client(server.address());
  absl::Notification done;
  absl::Status status;
  const CallHandle call =
      client.Classify(RequestWithBytes(3), kTimeout,
                      [&](absl::StatusOr<v1::ClassifyResponse> response) {
                        status = response.status();
                        done.Notify();
                      });
  server.AwaitCallCount(1);
  call.Cancel();
  WaitFor(done, "the end of the call");
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  server.AwaitCancelledCount(1);
}

TEST(VisionClientTest, CancelAfterTheEndDoesNothing) {
  FakeVisionServer server(AnswerCup);
  VisionClient client(server.address());
  absl::Notification done;
  const CallHandle call =
      client.Classify(RequestWithBytes(3), kTimeout,
                      [&](absl::StatusOr<v1::ClassifyResponse> response) {
                        EXPECT_TRUE(response.ok());
                        done.Notify();
                      });
  WaitFor(done, "the end of the call");
  call.Cancel();
}

TEST(VisionClientTest, TheTimeoutEndsTheCallOnBothSides) {
  FakeVisionServer server(AnswerCup);
  VisionClient client(server.address());
  // The first call connects the client.
  ASSERT_TRUE(client.Classify(RequestWithBytes(3), kTimeout).ok());
  server.Hang();
  EXPECT_EQ(client.Classify(RequestWithBytes(3), absl::Milliseconds(50))
                .status()
                .code(),
            absl::StatusCode::kDeadlineExceeded);
  server.AwaitCancelledCount(1);
}

TEST(VisionClientTest, TheDestructorWaitsForCallsInFlight) {
  FakeVisionServer server(AnswerCup);
  std::atomic<int> answers{0};
  {
    VisionClient client(server.address());
    for (int i = 0; i < 20; ++i) {
      client.Classify(RequestWithBytes(3), kTimeout,
                      [&](absl::StatusOr<v1::ClassifyResponse>) { ++answers; });
    }
  }
  EXPECT_EQ(answers, 20);
}

TEST(VisionClientTest, ServesManyThreads) {
  FakeVisionServer server(AnswerCup);
  VisionClient client(server.address());
  std::atomic<int> answers{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        if (client.Classify(RequestWithBytes(3), kTimeout).ok()) ++answers;
      }
    });
  }
  for (std::thread& thread : threads) Join(thread, "a calling thread");
  EXPECT_EQ(answers, 200);
}

TEST(VisionClientTest, OfTwoServersTheHealthyOneIsAsked) {
  FakeVisionServer drains(AnswerCup), serves(AnswerCup);
  drains.SetHealthy(false);
  VisionClient client("ipv4:" + drains.address() + "," + serves.address());
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(client.Classify(RequestWithBytes(3), kTimeout).ok());
  }
  EXPECT_EQ(drains.call_count(), 0);
}

TEST(VisionClientTest, AServerThatDrainsIsAskedIfThereIsNoOther) {
  FakeVisionServer server(AnswerCup);
  server.SetHealthy(false);
  VisionClient client(server.address());
  EXPECT_TRUE(client.Classify(RequestWithBytes(3), kTimeout).ok());
  absl::Notification done;
  client.Classify(RequestWithBytes(3), kTimeout,
                  [&](absl::StatusOr<v1::ClassifyResponse> response) {
                    EXPECT_TRUE(response.ok()) << response.status();
                    done.Notify();
                  });
  WaitFor(done, "an answer");
  const auto health = client.CheckHealth("sfmamba.v1.VisionService", kTimeout);
  ASSERT_TRUE(health.ok()) << health.status();
  EXPECT_EQ(*health, HealthStatus::NOT_SERVING);
}

TEST(VisionClientTest, StatesOfAServerAreSaidInASentence) {
  FakeVisionServer server(FailFirst(
      100, FakeError(grpc::StatusCode::UNAVAILABLE, "stopping", "DRAINING")));
  VisionClient client(server.address());
  const absl::Status draining =
      client.Classify(RequestWithBytes(3), kTimeout).status();
  EXPECT_EQ(draining.message(),
            "the server at " + server.address() + " is draining");
  EXPECT_EQ(GetRpcErrorDetails(draining).reason, "DRAINING");

  VisionClientOptions tls;
  tls.access.tls = true;
  VisionClient encrypted(server.address(), tls);
  EXPECT_EQ(encrypted.ListModels(kTimeout).status().message(),
            "the server at " + server.address() +
                " does not speak TLS: leave out --tls");
  const Certificate own = MakeCertificate();
  grpc::SslServerCredentialsOptions secrets;
  secrets.pem_key_cert_pairs = {{own.key, own.pem}};
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(secrets),
                           &port);
  v1::VisionService::Service service;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> secret = builder.BuildAndStart();
  const std::string address = "127.0.0.1:" + std::to_string(port);
  VisionClient plain(address);
  EXPECT_EQ(plain.ListModels(kTimeout).status().message(),
            "the server at " + address +
                " closes connections: does it expect TLS? --tls");
  VisionClient lost("no-such-host.invalid:1");
  EXPECT_EQ(lost.ListModels(kTimeout).status().message(),
            "the host of no-such-host.invalid:1 is unknown");
}

TEST(VisionClientTest, HealthOfAnUnknownServiceIsNotFound) {
  FakeVisionServer server(AnswerCup);
  VisionClient client(server.address());
  EXPECT_EQ(client.CheckHealth("no.such.Service", kTimeout).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(VisionClientTest, ListModelsJoinsThePages) {
  FakeVisionServer server(AnswerCup);
  server.SetModels({FakeModel("a"), FakeModel("b"), FakeModel("c")});
  VisionClient client(server.address());
  const auto models = client.ListModels(kTimeout);
  ASSERT_TRUE(models.ok()) << models.status();
  EXPECT_THAT(*models, ElementsAre(Property(&v1::Model::name, "a"),
                                   Property(&v1::Model::name, "b"),
                                   Property(&v1::Model::name, "c")));
}

TEST(VisionClientTest, AnAbsentServerIsUnavailable) {
  std::string address;
  { address = FakeVisionServer(AnswerCup).address(); }
  VisionClient client(address);
  const absl::Status status =
      client.Classify(RequestWithBytes(3), kTimeout).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "nothing listens at " + address);
}

TEST(VisionClientTest, AServerThatHasAnsweredIsWaitedFor) {
  auto server = std::make_unique<FakeVisionServer>(AnswerCup);
  const int port = server->port();
  VisionClientOptions options;
  options.share_connections = false;
  VisionClient client(server->address(), options);
  VisionClient newcomer(server->address(), options);
  ASSERT_TRUE(client.Classify(RequestWithBytes(3), kTimeout).ok());
  server = nullptr;
  absl::Notification done;
  std::thread caller([&] {
    EXPECT_TRUE(client.Classify(RequestWithBytes(3), kTimeout).ok());
  });
  client.Classify(RequestWithBytes(3), kTimeout,
                  [&](absl::StatusOr<v1::ClassifyResponse> response) {
                    EXPECT_TRUE(response.ok()) << response.status();
                    done.Notify();
                  });
  EXPECT_EQ(newcomer.Classify(RequestWithBytes(3), kTimeout).status().code(),
            absl::StatusCode::kUnavailable);
  server =
      std::make_unique<FakeVisionServer>(AnswerCup, nullptr, nullptr, port);
  WaitFor(done, "an answer");
  Join(caller, "an answer");
}

}  // namespace
}  // namespace sfmamba::client
