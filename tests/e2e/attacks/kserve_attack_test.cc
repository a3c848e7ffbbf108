// Attacks with large messages of the Open Inference Protocol that consist of
// tiny parts. If the server parsed each part into an object, a message would
// take much more memory than its size.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr size_t kMiB = 1 << 20;

class KserveAttackTest : public testing::Test {
 protected:
  KserveAttackTest() : server_({"--model_repository=" + WriteTinyModel()}) {}

  void SetUp() override { ASSERT_TRUE(server_.WaitUntilServing()); }

  // Calls a method on a separate connection.
  grpc::StatusCode Send(const std::string& method,
                        const grpc::ByteBuffer& request) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::GenericStub stub(grpc::CreateCustomChannel(
        server_.address(), grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::Status status;
    absl::Notification done;
    stub.UnaryCall(
        &context, absl::StrCat("/inference.GRPCInferenceService/", method),
        grpc::StubOptions(), &request, &response, [&](grpc::Status ended) {
          status = std::move(ended);
          done.Notify();
        });
    WaitFor(done, "the end of the call", kTestPatience);
    return status.error_code();
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  ServerProcess server_;
};

// Returns `start` followed by 60 MiB of repetitions of `part`.
grpc::ByteBuffer Repeated(std::string start, const std::string& part) {
  start.reserve(60 * kMiB + part.size());
  while (start.size() < 60 * kMiB) start += part;
  const grpc::Slice slice(start);
  return grpc::ByteBuffer(&slice, 1);
}

TEST_F(KserveAttackTest, SmallPartsTakeNoMoreThanTheirBytes) {
  const std::string tiny = std::string("\x0a\x04") + "tiny";
  const struct {
    const char* method;
    grpc::ByteBuffer message;
  } attacks[] = {
      // Repeats `inputs`.
      {"ModelInfer", Repeated(tiny, std::string("\x2a\0", 2))},
      // Repeats `outputs`.
      {"ModelInfer", Repeated(tiny, std::string("\x32\0", 2))},
      // Repeats raw contents.
      {"ModelInfer", Repeated(tiny, std::string("\x3a\0", 2))},
      // Repeats `parameters`.
      {"ModelInfer", Repeated(tiny, std::string("\x22\0", 2))},
      // A single input of about 60 MiB with a very long shape.
      {"ModelInfer", Repeated("\x2a\xf0\xff\xff\x1d", "\x18\x01")},
      {"RepositoryModelLoad", Repeated("", std::string("\x1a\0", 2))},
      {"ModelStatistics", Repeated("", std::string("\x0a\0", 2))},
  };
  const int64_t before = server_.peak_resident_bytes();
  Victim victim(server_);
  for (const auto& attack : attacks) {
    std::vector<std::thread> senders;
    for (int i = 0; i < 3; ++i) {
      senders.emplace_back([&] {
        EXPECT_NE(Send(attack.method, attack.message), grpc::StatusCode::OK)
            << attack.method;
      });
    }
    for (std::thread& sender : senders) sender.join();
  }
  const Victim::Count count = victim.Stop();
  EXPECT_GT(count.sent, 0);
  EXPECT_GE(count.answered, 0.95 * count.sent) << count.first_error;
  // The limit leaves room for three messages of 60 MiB and for gRPC's read
  // buffers.
  EXPECT_LT(server_.peak_resident_bytes() - before,
            static_cast<int64_t>(400 * kMiB));
}

}  // namespace
}  // namespace sfmamba
