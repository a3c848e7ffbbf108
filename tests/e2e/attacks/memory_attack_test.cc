// Attacks with pictures, messages and answers that could use up the server's
// memory. The server must stay within its budget and answer a polite caller.

#include <chrono>
#include <cstdint>
#include <cstdio>  // Must precede jpeglib.h.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "jpeglib.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/server/picture.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kBudget = 1536 * kMiB;
// The server's memory may be this many bytes larger after an attack, because
// malloc() keeps some freed memory.
constexpr int64_t kLeft = 256 * kMiB;

std::string Repository() {
  const std::string repository = WriteTinyModel();
  AddRandomDenseModels(repository);
  return repository;
}

std::shared_ptr<grpc::Channel> Connect(const ServerProcess& server,
                                       grpc::ChannelArguments arguments = {}) {
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(
      server.address(), grpc::InsecureChannelCredentials(), arguments);
}

grpc::ByteBuffer BytesOf(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// Returns a request of 60 MB.
v1::SegmentRequest LargeRequest() {
  v1::SegmentRequest request;
  request.set_model("painter");
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(5000);
  pixels.set_height(4000);
  pixels.set_format(v1::PixelBuffer::RGB8);
  pixels.set_data(std::string(size_t{3} * 5000 * 4000, 'a'));
  return request;
}

// Sends one request many times at once over one connection. The client stores
// the request's bytes only once.
class Flood {
 public:
  Flood(const ServerProcess& server, const std::string& method,
        const google::protobuf::Message& request, int calls)
      : request_(BytesOf(request)), left_(calls), stub_(Connect(server)) {
    for (int i = 0; i < calls; ++i) {
      Call& call = *calls_.emplace_back(std::make_unique<Call>());
      call.context.set_deadline(std::chrono::system_clock::now() +
                                std::chrono::seconds(10));
      stub_.UnaryCall(&call.context, "/sfmamba.v1.VisionService/" + method,
                      grpc::StubOptions(), &request_, &call.response,
                      [this, &call](grpc::Status status) {
                        call.status = std::move(status);
                        left_.DecrementCount();
                      });
    }
  }

  // Waits for all calls. Returns how many of them ended with `code`.
  int Wait(grpc::StatusCode code) {
    if (!waited_) WaitFor(left_, "the end of the calls", kTestPatience);
    waited_ = true;
    int count = 0;
    for (const auto& call : calls_) count += call->status.error_code() == code;
    return count;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::Status status;
  };

  const grpc::ByteBuffer request_;
  bool waited_ = false;
  absl::BlockingCounter left_;
  grpc::GenericStub stub_;
  std::vector<std::unique_ptr<Call>> calls_;
};

// Starts calls and never reads their answers.
class UnreadCalls {
 public:
  UnreadCalls(const ServerProcess& server, const std::string& method,
              const google::protobuf::Message& request, int calls) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = std::make_unique<grpc::GenericStub>(Connect(server, arguments));
    const grpc::ByteBuffer bytes = BytesOf(request);
    for (int i = 0; i < calls; ++i) {
      Call& call = *calls_.emplace_back(std::make_unique<Call>());
      call.stream = stub_->PrepareCall(
          &call.context, "/sfmamba.v1.VisionService/" + method, &queue_);
      call.stream->StartCall(this);
      Next();
      call.stream->WriteLast(bytes, grpc::WriteOptions(), this);
      Next();
    }
  }
  ~UnreadCalls() {
    for (const auto& call : calls_) {
      call->context.TryCancel();
      call->stream->Finish(&call->status, this);
      Next();
    }
    queue_.Shutdown();
    Next();
  }

 private:
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::Status status;
  };

  void Next() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Call>> calls_;
};

class MemoryAttackTest : public testing::Test {
 protected:
  MemoryAttackTest()
      : server_({"--model_repository=" + Repository(), "--random_init",
                 absl::StrCat("--memory_budget_bytes=", kBudget),
                 "--decode_threads=16", "--send_timeout=3s"}) {}

  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilServing());
    before_ = server_.resident_bytes();
  }

  void TearDown() override {
    const int64_t peak = server_.peak_resident_bytes();
    RecordProperty("peak_mib", static_cast<int>(peak / kMiB));
    std::printf("RSS: %ld MiB before, %ld MiB at most, %ld MiB after\n",
                static_cast<long>(before_ / kMiB),
                static_cast<long>(peak / kMiB),
                static_cast<long>(server_.resident_bytes() / kMiB));
    EXPECT_LE(peak, kBudget / 10 * 11);
    // The server must release all memory of the attack.
    for (const char* name :
         {"sfmamba_memory_held_bytes", "sfmamba_in_flight_requests"}) {
      WaitUntil([&] { return Sum(name, {}) == 0; }, name);
    }
    WaitUntil([this] { return server_.resident_bytes() < before_ + kLeft; },
              "the return of the memory");
  }

  double Sum(const std::string& name,
             const std::initializer_list<std::string>& labels) {
    return SumOf(Samples(HttpGet(server_.metrics_port(), "/metrics")), name,
                 labels);
  }

  void ExpectUnharmed(Victim* victim) {
    const Victim::Count count = victim->Stop();
    std::printf("victim: %d of %d\n", count.answered, count.sent);
    EXPECT_GT(count.sent, 0);
    EXPECT_GE(count.answered, 0.95 * count.sent) << count.first_error;
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  ServerProcess server_;
  int64_t before_ = 0;  // The RSS before the attack.
};

// Each JPEG has a single colour, so the file is small. Yet the decoder of a
// progressive JPEG keeps all coefficients. They take six bytes per pixel of the
// file's picture, even if the decoder makes a smaller picture from it.
TEST_F(MemoryAttackTest, ProgressiveJpegsOf49Megapixels) {
  constexpr int kSide = 7000;
  const std::string jpeg = [] {
    const std::vector<uint8_t> pixels(size_t{3} * kSide * kSide, 90);
    return server::EncodeJpeg(kSide, kSide, 3, pixels.data(),
                              [](jpeg_compress_struct& compress) {
                                compress.comp_info[0].h_samp_factor = 1;
                                compress.comp_info[0].v_samp_factor = 1;
                                jpeg_simple_progression(&compress);
                              });
  }();
  v1::ClassifyRequest request;
  request.set_model("tiny");
  for (int i = 0; i < 16; ++i) request.add_images()->set_encoded(jpeg);
  Victim victim(server_);
  Flood flood(server_, "Classify", request, 1);
  flood.Wait(grpc::StatusCode::OK);
  ExpectUnharmed(&victim);
}

// gRPC's part of the memory budget has room for all four messages, so gRPC must
// read them. If this part were used up, gRPC would end calls with UNAVAILABLE.
// After reading, the server may refuse some messages with another code.
TEST_F(MemoryAttackTest, FourMessagesOf60MBOnAConnectionAreRead) {
  const v1::SegmentRequest request = LargeRequest();
  Flood flood(server_, "Segment", request, 4);
  EXPECT_GT(flood.Wait(grpc::StatusCode::OK), 0);
  EXPECT_EQ(flood.Wait(grpc::StatusCode::UNAVAILABLE), 0);
}

TEST_F(MemoryAttackTest, AnswersThatNobodyReads) {
  v1::SegmentRequest request;
  request.set_model("painter");
  const image::RgbImage blank{3000, 2800,
                              std::vector<uint8_t>(3 * 3000 * 2800)};
  request.add_images()->set_encoded(server::EncodePng(blank));
  request.mutable_params()->set_encoding(v1::SegmentParams::RAW_INDEX);
  Victim victim(server_);
  const UnreadCalls calls(server_, "Segment", request, 60);
  // Every call must be answered or refused, and then end, although the client
  // reads nothing.
  WaitUntil(
      [this] {
        return Sum("sfmamba_requests_total", {"method=\"Segment\""}) == 60;
      },
      "the end of the calls", kTestPatience);
  WaitUntil(
      [this] {
        return Sum("sfmamba_memory_held_bytes", {"what=\"answer\""}) < kMiB;
      },
      "the end of what is not read", kTestPatience);
  ExpectUnharmed(&victim);
}

}  // namespace
}  // namespace sfmamba
