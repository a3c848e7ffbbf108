// Attacks with malformed messages and with messages that need much more memory
// or time than their size suggests.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Returns the reason in a call's ErrorInfo. If there is none, returns "code "
// and the call's status code.
std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status proto;
  proto.ParseFromString(status.error_details());
  google::rpc::ErrorInfo info;
  for (const google::protobuf::Any& any : proto.details()) {
    if (any.UnpackTo(&info)) return info.reason();
  }
  return absl::StrCat("code ", status.error_code());
}

class WireAttackTest : public testing::Test {
 protected:
  WireAttackTest() : server_({"--model_repository=" + WriteTinyModel()}) {}

  void SetUp() override { ASSERT_TRUE(server_.WaitUntilServing()); }

  // Calls a method of VisionService on a separate connection. Returns
  // ReasonOf() of the call's status.
  std::string Send(
      const std::string& method, const grpc::ByteBuffer& request,
      grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::GenericStub stub(grpc::CreateCustomChannel(
        server_.address(), grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_compression_algorithm(compression);
    grpc::ByteBuffer response;
    grpc::Status status;
    absl::Notification done;
    stub.UnaryCall(&context, absl::StrCat("/sfmamba.v1.VisionService/", method),
                   grpc::StubOptions(), &request, &response,
                   [&](grpc::Status ended) {
                     status = std::move(ended);
                     done.Notify();
                   });
    WaitFor(done, "the end of the call", kTestPatience);
    return ReasonOf(status);
  }

  double Sum(const std::string& name,
             const std::initializer_list<std::string>& labels) {
    return SumOf(Samples(HttpGet(server_.metrics_port(), "/metrics")), name,
                 labels);
  }

  void ExpectUnharmed(Victim* victim) {
    const Victim::Count count = victim->Stop();
    EXPECT_GT(count.sent, 0);
    EXPECT_GE(count.answered, 0.95 * count.sent) << count.first_error;
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  ServerProcess server_;
};

grpc::ByteBuffer Bytes(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

TEST_F(WireAttackTest, EmptyImagesTakeNoMoreThanTheirBytes) {
  constexpr int kSenders = 3, kRounds = 3;
  std::string images;
  while (images.size() < 60 * kMiB) images += {'\x12', '\0'};
  const grpc::ByteBuffer request = Bytes(images);
  const int64_t before = server_.peak_resident_bytes();
  Victim victim(server_);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> senders;
    for (int i = 0; i < kSenders; ++i) {
      senders.emplace_back(
          [&] { EXPECT_EQ(Send("Classify", request), "TOO_MANY_IMAGES"); });
    }
    for (std::thread& sender : senders) sender.join();
  }
  ExpectUnharmed(&victim);
  // This is enough for one copy of each message and for gRPC's read buffers.
  EXPECT_LT(server_.peak_resident_bytes() - before, 400 * kMiB);
  EXPECT_EQ(Sum("sfmamba_items_total", {R"(outcome="error")"}),
            kSenders * kRounds);
}

TEST_F(WireAttackTest, WhatIsNoMessageIsRefusedWithAReasonAndCounted) {
  constexpr int kCalls = 50;
  Victim victim(server_);
  for (int i = 0; i < kCalls; ++i) {
    for (const char* method : {"Classify", "Detect", "Segment"}) {
      // The bytes contain a length beyond the end of the message, or a model
      // name that is not UTF-8.
      const std::string bytes = i % 2 == 0 ? std::string("\x12\x7fxyz", 5)
                                           : std::string("\x0a\x02\xc0\x80", 4);
      ASSERT_EQ(Send(method, Bytes(bytes)), "MALFORMED_MESSAGE");
    }
  }
  ExpectUnharmed(&victim);
  EXPECT_EQ(Sum("sfmamba_requests_total", {R"(reason="MALFORMED_MESSAGE")",
                                           R"(code="INVALID_ARGUMENT")"}),
            3 * kCalls);
}

// A compressed message of a KiB may decompress to a MiB, so its size does not
// show how much memory it needs.
TEST_F(WireAttackTest, CompressedMessagesAreNotBlownUp) {
  const std::string zeros(kMiB, '\0');
  const std::vector<grpc::Slice> slices(
      400, grpc::Slice(zeros.data(), zeros.size(), grpc::Slice::STATIC_SLICE));
  const grpc::ByteBuffer request(slices.data(), slices.size());
  const int64_t before = server_.peak_resident_bytes();
  Victim victim(server_);
  EXPECT_EQ(Send("Classify", request, GRPC_COMPRESS_GZIP),
            "code 12");  // The code of UNIMPLEMENTED.
  ExpectUnharmed(&victim);
  EXPECT_LT(server_.peak_resident_bytes() - before, 200 * kMiB);
}

}  // namespace
}  // namespace sfmamba
