// Calls of every gRPC service at once with random messages, against orders and
// contents that no other test thought of.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"
#include "sfmamba/v1/admin.grpc.pb.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/attacks/random_messages.h"
#include "tests/e2e/server_process.h"
#include "tests/server/picture.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

namespace pb = google::protobuf;

constexpr int kCallers = 6;
constexpr int kCalls = 300;  // Calls by each caller, one after the other.

std::string LengthPrefixed(const std::string& bytes) {
  const auto size = static_cast<uint32_t>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&size), 4) + bytes;
}

RandomMessages::Words WordsWith(const std::string& shared_memory) {
  const std::string picture = server::EncodePng(server::Gradient(64, 64));
  const std::vector<std::string> models = {"tiny", "tiny", "finder", "painter",
                                           "models/tiny/versions/1"};
  return {
      {"model", models},
      {"DetectRequest.model", {"finder", "finder", "tiny"}},
      {"SegmentRequest.model", {"painter", "painter", "tiny"}},
      {"model_name", models},
      {"name",
       {"tiny", "finder", "painter", "image", "image", "image", "region"}},
      {"version", {"", "", "1", "1", "2"}},
      {"model_version", {"", "", "1", "1", "2"}},
      {"images", {}},
      {"encoded", {picture, picture, picture.substr(0, 200)}},
      {"width", {"64"}},
      {"height", {"64"}},
      {"data", {std::string(3 * 64 * 64, '\7'), ""}},
      {"row_stride_bytes", {"0"}},
      {"request", {}},
      {"inputs", {}},
      {"datatype", {"BYTES", "BYTES", "BYTES", "BYTES", "UINT8"}},
      {"shape", {"1", "1", "1", "3"}},
      {"raw_input_contents", {LengthPrefixed(picture), "", "\1"}},
      {"bytes_contents", {picture}},
      {"key",
       {"shared_memory_region", "shared_memory_byte_size", "priority",
        "timeout", "classification", shared_memory}},
      {"value", {}},
      {"byte_size", {"4096"}},
      {"offset", {"0", "64"}},
      {"service", {"", "models/tiny", "sfmamba.v1.VisionService"}},
      {"file_by_filename", {"sfmamba/v1/vision.proto"}},
      {"file_containing_symbol",
       {"sfmamba.v1.VisionService", "inference.GRPCInferenceService"}},
      {"label", {"stable", "canary"}},
      {"percent", {"0", "100"}},
      {"log_level", {"info", "error"}},
      {"trace_ratio", {"0", "1"}},
      {"list_services", {""}},
  };
}

// Calls methods with messages of its own, one call after the other.
class Caller {
 public:
  Caller(const std::string& address, int seed, const std::string& shared_memory)
      : random_(seed, WordsWith(shared_memory)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
  }

  grpc::StatusCode Call(const pb::MethodDescriptor& method) {
    grpc::ClientContext context;
    // Watches have no end of their own.
    const bool watches =
        method.server_streaming() && !method.client_streaming();
    const bool hurried = watches || random_.Below(5) == 0;
    context.set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::milliseconds(hurried ? 1 + random_.Below(50) : 5000));
    grpc::CompletionQueue queue;
    const auto next = [&queue] {
      void* tag;
      bool ok = false;
      queue.Next(&tag, &ok);
      return ok;
    };
    const auto call = stub_->PrepareCall(
        &context,
        absl::StrCat("/", method.service()->full_name(), "/", method.name()),
        &queue);
    call->StartCall(nullptr);
    bool ok = next();
    const int messages = method.client_streaming() ? random_.Below(6) : 1;
    for (int i = 0; i < messages && ok; ++i) {
      const grpc::Slice bytes(random_.Next(*method.input_type()));
      call->Write(grpc::ByteBuffer(&bytes, 1), nullptr);
      ok = next();
    }
    if (random_.Below(20) == 0) context.TryCancel();
    if (ok) {
      call->WritesDone(nullptr);
      next();
    }
    grpc::ByteBuffer answer;
    do {
      call->Read(&answer, nullptr);
      if (random_.Below(20) == 0) context.TryCancel();
    } while (next());
    grpc::Status status;
    call->Finish(&status, nullptr);
    next();
    return status.error_code();
  }

  RandomMessages& random() { return random_; }

 private:
  RandomMessages random_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

class RandomCallsAttackTest : public testing::Test {
 protected:
  RandomCallsAttackTest()
      : shared_memory_(absl::StrCat("/sfmamba_random_calls_", getpid())) {
    const int fd = shm_open(shared_memory_.c_str(), O_CREAT | O_RDWR, 0600);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(ftruncate(fd, 8192), 0);
    close(fd);
    const std::string repository = WriteTinyModel("max_batch_size: 4");
    AddRandomDenseModels(repository);
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--model_repository=" + repository,
                                 "--random_init", "--model_control=explicit",
                                 "--system_shared_memory", "--drain_delay=0s"});
  }
  ~RandomCallsAttackTest() override { shm_unlink(shared_memory_.c_str()); }

  void SetUp() override { ASSERT_TRUE(server_->WaitUntilServing()); }

  double Sum(const std::string& name) {
    return SumOf(Samples(HttpGet(server_->metrics_port(), "/metrics")), name,
                 {});
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  const std::string shared_memory_;
  std::unique_ptr<ServerProcess> server_;
};

// Returns the methods of all services. Those that ask or load models stand
// there five times, so that most calls find their model loaded.
std::vector<const pb::MethodDescriptor*> Methods() {
  std::vector<const pb::MethodDescriptor*> methods;
  for (const pb::FileDescriptor* file :
       {v1::ClassifyRequest::descriptor()->file(),
        v1::LoadModelRequest::descriptor()->file(),
        inference::ModelInferRequest::descriptor()->file(),
        grpc::health::v1::HealthCheckRequest::descriptor()->file(),
        grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()
            ->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      const pb::ServiceDescriptor& service = *file->service(i);
      for (int j = 0; j < service.method_count(); ++j) {
        const std::string& name = service.method(j)->name();
        const bool asks = file == v1::ClassifyRequest::descriptor()->file() ||
                          absl::StrContains(name, "Infer") ||
                          absl::EndsWith(name, "Load") || name == "LoadModel";
        methods.insert(methods.end(), asks ? 5 : 1, service.method(j));
      }
    }
  }
  return methods;
}

TEST_F(RandomCallsAttackTest, LeaveTheServerAsItWas) {
  const std::vector<const pb::MethodDescriptor*> methods = Methods();
  absl::Mutex mu;
  std::map<std::string, std::map<int, int>> answers;  // Count by method, code.
  int answered = 0;                                   // With OK.
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      // --gtest_shuffle --gtest_random_seed=n makes other calls.
      const int seed = testing::UnitTest::GetInstance()->random_seed();
      Caller caller(server_->address(), seed * kCallers + i, shared_memory_);
      for (int n = 0; n < kCalls; ++n) {
        const pb::MethodDescriptor& method =
            *methods[caller.random().Below(static_cast<int>(methods.size()))];
        const grpc::StatusCode code = caller.Call(method);
        absl::MutexLock lock(&mu);
        ++answers[method.full_name()][code];
        answered += code == grpc::StatusCode::OK;
      }
    });
  }
  for (std::thread& caller : callers) {
    Join(caller, "the calls' end", kTestPatience);
  }

  for (const auto& [method, codes] : answers) {
    std::printf("%s:", method.c_str());
    for (const auto& [code, count] : codes) {
      std::printf(" %d of code %d", count, code);
    }
    std::printf("\n");
    EXPECT_EQ(codes.count(grpc::StatusCode::UNKNOWN), 0) << method;
    EXPECT_EQ(codes.count(grpc::StatusCode::INTERNAL), 0) << method;
  }
  EXPECT_GT(answered, kCallers * kCalls / 4);
  for (const char* held :
       {"sfmamba_in_flight_requests", "sfmamba_memory_held_bytes",
        "sfmamba_queue_items", "sfmamba_decode_queue_items"}) {
    WaitUntil([&] { return Sum(held) == 0; }, absl::StrCat(held, " of 0"));
  }
  for (const auto& [name, value] :
       Samples(HttpGet(server_->metrics_port(), "/metrics"))) {
    EXPECT_GE(value, 0) << name;
  }
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0) << server_->output();
}

}  // namespace
}  // namespace sfmamba
