// Calls every gRPC service concurrently with random messages, to find sequences
// and contents that no other test covers.

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
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
#include "tests/e2e/attacks/random_calls.h"
#include "tests/e2e/attacks/random_messages.h"

namespace sfmamba {
namespace {

namespace pb = google::protobuf;

// Calls methods with random messages, one call after another.
class Caller {
 public:
  Caller(const std::string& address, int seed, RandomMessages::Words words)
      : random_(seed, std::move(words)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
  }

  grpc::StatusCode Call(const pb::MethodDescriptor& method) {
    grpc::ClientContext context;
    // A watch, that is, a call whose answers never end, gets a short deadline.
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

using RandomCallsAttackTest = RandomCallsTest;

// Returns the methods of all services. Methods that predict or load models are
// in the list five times, so that most calls find their model loaded.
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
  std::map<std::string, std::map<int, int>>
      answers;       // The number of answers by method and code.
  int answered = 0;  // The number of answers with the code OK.
  RunCallers([&](int seed) {
    Caller caller(server_->address(), seed, Words());
    for (int n = 0; n < kCalls; ++n) {
      const pb::MethodDescriptor& method =
          *methods[caller.random().Below(static_cast<int>(methods.size()))];
      const grpc::StatusCode code = caller.Call(method);
      absl::MutexLock lock(&mu);
      ++answers[method.full_name()][code];
      answered += code == grpc::StatusCode::OK;
    }
  });

  for (const auto& [method, codes] : answers) {
    std::printf("%s:", method.c_str());
    for (const auto& [code, count] : codes) {
      std::printf(" %d of code %d", count, code);
    }
    std::printf("\n");
    EXPECT_EQ(codes.count(grpc::StatusCode::UNKNOWN), 0) << method;
    EXPECT_EQ(codes.count(grpc::StatusCode::INTERNAL), 0) << method;
  }
  EXPECT_GT(answered, kCallers * kCalls / 10);
  ExpectUnharmed();
}

}  // namespace
}  // namespace sfmamba
