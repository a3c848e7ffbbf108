// Tests cancellations at each stage of a call. The test replaces gRPC, so it
// calls the server's reactor itself. It blocks the call at one stage and then
// cancels the call.

#include <pthread.h>

#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/steady_clock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"
#include "server/api/vision/vision_methods.h"
#include "server/batching/executor.h"
#include "server/call/method_table.h"
#include "server/rpc/method_service.h"
#include "server/rpc/send_watch.h"
#include "tests/server/fake_model.h"
#include "tests/server/picture.h"
#include "tests/server/running_server.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

constexpr int kQueueItems = 100;
constexpr int kDetect = 1;  // The row of Detect in VisionMethods().

// Occupies a pool's only thread until the test releases the thread.
class HeldPool {
 public:
  explicit HeldPool(FairPool* pool) {
    Work work;
    work.run = [this] {
      held_.Notify();
      WaitFor(released_, "the test's leave to free the thread", kTestPatience);
    };
    pool->Run(std::move(work));
    WaitFor(held_, "the pool's only thread");
  }
  void Release() { released_.Notify(); }

 private:
  absl::Notification held_;
  absl::Notification released_;
};

// A call of Detect without a connection. The test calls the reactor's methods
// that gRPC would call, for example to cancel the call.
class Call {
 public:
  Call(const call::MethodTable& methods, rpc::SendWatch* sends,
       const v1::DetectRequest& request)
      : request_(Bytes(request)),
        reactor_(rpc::Serve(methods, methods.methods()[kDetect],
                            {&context_, &request_, &response_}, sends)) {
    grpc_side_ = std::make_unique<GrpcSide>(reactor_);
  }
  // Tells the reactor that the answer was sent.
  ~Call() { reactor_->OnDone(); }

  void Cancel() { reactor_->OnCancel(); }
  bool has_ended() const { return grpc_side_->ended.HasBeenNotified(); }
  grpc::StatusCode Wait() {
    WaitFor(grpc_side_->ended, "the end of the call");
    return grpc_side_->status.error_code();
  }

 private:
  class GrpcSide final : public grpc::ServerCallbackUnary {
   public:
    explicit GrpcSide(grpc::ServerUnaryReactor* reactor) : reactor_(reactor) {
      BindReactor(reactor);
    }
    void Finish(grpc::Status s) override {
      status = std::move(s);
      ended.Notify();  // Notify() aborts if it is called twice.
    }
    void SendInitialMetadata() override {}

    absl::Notification ended;
    grpc::Status status;

   private:
    grpc::internal::ServerReactor* reactor() override { return reactor_; }
    void CallOnDone() override {}

    grpc::ServerUnaryReactor* const reactor_;
  };

  static grpc::ByteBuffer Bytes(const v1::DetectRequest& request) {
    const grpc::Slice slice(request.SerializeAsString());
    return grpc::ByteBuffer(&slice, 1);
  }

  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  grpc::CallbackServerContext context_;
  rpc::Reactor* const reactor_;
  std::unique_ptr<GrpcSide> grpc_side_;
};

FairPool::Options OneThread(const char* name) {
  FairPool::Options options;
  options.name = name;
  return options;
}

class CancellationTest : public testing::Test {
 protected:
  CancellationTest()
      : folder_(NewFolder("models")),
        log_file_(std::tmpfile(), &std::fclose),
        log_(log_file_.get(), observability::LogLevel::kInfo,
             observability::LogFormat::kJson),
        finish_pool_(OneThread("finish")),
        repository_(InFolder(), MakeLoad(), &metrics_, &log_),
        decode_pool_(OneThread("decode")),
        methods_(Environment(), api::VisionMethods()) {
    // The calls of this test have no deadline and an empty client name. The
    // server logs this once for each client. The set of these clients already
    // contains the empty name, so the server logs nothing.
    clients_.Insert("");
    EXPECT_TRUE(repository_.Scan().ok());
    EXPECT_TRUE(repository_
                    .LoadAll([](const repository::ModelVersion&) {},
                             [] { return false; })
                    .ok());
  }

  // Returns a request with `images` images. Each has an object with a mask that
  // is too wide for a batch thread to encode.
  static v1::DetectRequest RequestOf(int images) {
    v1::DetectRequest request;
    for (int i = 0; i < images; ++i) {
      request.add_images()->set_encoded(
          EncodePng(WithRed(1920, 960, {200, 200, 1600, 400})));
    }
    request.mutable_params()->set_mask_encoding(v1::DetectParams::COCO_RLE);
    return request;
  }
  std::unique_ptr<Call> Start(int images = 1) {
    return std::make_unique<Call>(methods_, &sends_, RequestOf(images));
  }

  // Expects that the call ends as cancelled, that each image is counted once,
  // and that all resources are released.
  void ExpectCancelled(Call& call, int cancelled = 1, int ok = 0) {
    EXPECT_EQ(call.Wait(), grpc::StatusCode::CANCELLED);
    ExpectCounted("CANCELLED", cancelled, ok);
  }
  void ExpectCounted(const char* code, int cancelled, int ok) {
    EXPECT_EQ(
        Sum("sfmamba_requests_total", {absl::StrCat("code=\"", code, "\"")}),
        1);
    EXPECT_EQ(Sum("sfmamba_requests_total", {}), 1);
    EXPECT_EQ(Sum("sfmamba_items_total", {R"(outcome="cancelled")"}),
              cancelled);
    EXPECT_EQ(Sum("sfmamba_items_total", {R"(outcome="ok")"}), ok);
    EXPECT_EQ(Sum("sfmamba_items_total", {}), cancelled + ok);
    // The request counts until its answer is sent.
    EXPECT_EQ(Sum("sfmamba_in_flight_requests", {}), 1);
    EXPECT_EQ(Sum("sfmamba_queue_items", {}), 0);
    batching::AdmissionRequest all;
    all.images = kQueueItems;
    EXPECT_TRUE(executor().Admit(all, 0).ok());
  }
  double Sum(const std::string& name,
             const std::initializer_list<std::string>& labels) {
    return SumOf(
        Samples(prometheus::TextSerializer().Serialize(metrics_.Collect())),
        name, labels);
  }
  batching::Executor& executor() {
    return *(*repository_.List().front()->Loaded())->executor;
  }

  const std::string folder_;
  Gate model_gate_, mask_gate_, decode_gate_;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log_file_;
  observability::Logger log_;
  observability::Metrics metrics_{observability::BuildInfo()};
  batching::QueueRoom decode_room_{{kQueueItems, 1 << 20}};
  MemoryBudget memory_{512 << 20, 192 << 20};
  batching::QueueRoom finish_room_{{kQueueItems, 1 << 20}};
  ClientSet clients_{1};
  prediction::ExpectedCosts costs_;
  FairPool finish_pool_;
  repository::ModelRepository repository_;
  FairPool decode_pool_;
  rpc::SendWatch sends_{absl::InfiniteDuration(), base::SteadyNow};
  const call::MethodTable methods_;

 private:
  repository::ModelRepository::Options InFolder() {
    WriteModel(folder_, "fake", "1",
               absl::StrCat("max_batch_size: 1 max_queue_items: ", kQueueItems),
               model::VisionTask::kDetection);
    repository::ModelRepository::Options options;
    options.directory = folder_;
    return options;
  }
  // Returns the environment of the calls. The clock of this environment passes
  // `decode_gate_` when a decode thread reads the time. If the gate is closed,
  // the thread blocks while it decodes a picture.
  prediction::TransportEnvironment Environment() {
    prediction::TransportEnvironment environment{
        {repository_, decode_pool_, decode_room_, finish_pool_, finish_room_,
         memory_, costs_, metrics_, log_, clients_}};
    environment.clock = [this] {
      char name[16] = "";
      pthread_getname_np(pthread_self(), name, sizeof(name));
      if (std::string(name) == "decode") decode_gate_.Pass();
      return base::SteadyNow();
    };
    return environment;
  }
  repository::ModelRepository::Load MakeLoad() {
    return [this](const repository::ModelDirectory& directory,
                  const repository::ModelRepository::CaptureFailed&)
               -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
      return std::make_unique<FakeModel>(directory.config, &model_gate_,
                                         &mask_gate_);
    };
  }
};

TEST_F(CancellationTest, BeforeADecodeThreadIsFree) {
  HeldPool pool(&decode_pool_);
  const auto call = Start(3);
  call->Cancel();
  EXPECT_FALSE(call->has_ended()) << "its images are still in the pool";
  pool.Release();
  ExpectCancelled(*call, 3);
  EXPECT_EQ(Sum("sfmamba_image_pixels_count", {}), 0) << "none was decoded";
}

TEST_F(CancellationTest, WhileAPictureIsDecoded) {
  decode_gate_.Close();
  const auto call = Start();
  decode_gate_.WaitForBatch();
  call->Cancel();
  decode_gate_.Open();
  ExpectCancelled(*call);
  EXPECT_EQ(Sum("sfmamba_batches_total", {}), 0);
}

TEST_F(CancellationTest, WhileAnImageWaitsForItsBatch) {
  model_gate_.Close();
  auto other = Start();
  model_gate_.WaitForBatch();
  const auto call = Start();
  WaitUntil([this] { return Sum("sfmamba_queue_items", {}) == 1; },
            "the image in the queue");
  call->Cancel();
  EXPECT_EQ(call->Wait(), grpc::StatusCode::CANCELLED)
      << "the other still runs";
  model_gate_.Open();
  EXPECT_EQ(other->Wait(), grpc::StatusCode::OK);
  EXPECT_EQ(Sum("sfmamba_items_total", {R"(outcome="cancelled")"}), 1);
  EXPECT_EQ(Sum("sfmamba_items_total", {R"(outcome="ok")"}), 1);
}

TEST_F(CancellationTest, WhileTheModelRuns) {
  model_gate_.Close();
  const auto call = Start();
  model_gate_.WaitForBatch();
  call->Cancel();
  model_gate_.Open();
  ExpectCancelled(*call);
}

TEST_F(CancellationTest, BeforeAFinishThreadIsFree) {
  HeldPool pool(&finish_pool_);
  const auto call = Start();
  WaitUntil([this] { return finish_pool_.queued() > 0; },
            "the answer that is to be encoded");
  call->Cancel();
  EXPECT_FALSE(call->has_ended());
  pool.Release();
  ExpectCancelled(*call);
  EXPECT_EQ(
      Sum("sfmamba_stage_duration_seconds_count", {R"(stage="postprocess")"}),
      0)
      << "nothing was encoded";
}

TEST_F(CancellationTest, WhileTheAnswerIsEncoded) {
  mask_gate_.Close();
  const auto call = Start();
  mask_gate_.WaitForBatch();
  call->Cancel();
  mask_gate_.Open();
  // The model had finished the image, so only the answer is dropped.
  ExpectCancelled(*call, /*cancelled=*/0, /*ok=*/1);
}

TEST_F(CancellationTest, BetweenTheImagesOfACall) {
  mask_gate_.Close();
  const auto call = Start(3);
  // The only finish thread encodes the first image's mask and blocks at the
  // gate. The other two images wait for this thread.
  mask_gate_.WaitForBatch();
  WaitUntil([this] { return finish_pool_.queued() >= 2; },
            "the other answers that are to be encoded");
  call->Cancel();
  mask_gate_.Open();
  ExpectCancelled(*call, /*cancelled=*/2, /*ok=*/1);
}

TEST_F(CancellationTest, AfterTheAnswerWasGiven) {
  const auto call = Start();
  EXPECT_EQ(call->Wait(), grpc::StatusCode::OK);
  call->Cancel();
  ExpectCounted("OK", /*cancelled=*/0, /*ok=*/1);
}

TEST_F(CancellationTest, OfACallThatWasRefused) {
  v1::DetectRequest request = RequestOf(1);
  request.mutable_params()->set_max_detections(-1);
  Call call(methods_, &sends_, request);
  call.Cancel();
  EXPECT_EQ(call.Wait(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace sfmamba::server
