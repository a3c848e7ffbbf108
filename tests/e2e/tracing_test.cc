// Tests a real server process that sends its spans to a collector in this
// process.

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "inference/grpc_service.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/server/picture.h"
#include "tests/server/tracing/collector_stand_in.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

using nlohmann::json;
using tracing::AttributeOf;
using tracing::CollectorStandIn;

constexpr int kImages = 3;
constexpr char kParent[] = "00f067aa0ba902b7";

// Returns a trace id that ends with `number`.
std::string Trace(int number) {
  return absl::StrCat("4bf92f3577b34da6a3ce929d",
                      absl::Hex(number, absl::kZeroPad8));
}
std::string Traceparent(int number) {
  return absl::StrCat("00-", Trace(number), "-", kParent, "-01");
}

int64_t Nanos(const json& span, const char* key) {
  int64_t nanos = 0;
  EXPECT_TRUE(absl::SimpleAtoi(span[key].get<std::string>(), &nanos));
  return nanos;
}

class TracingProcessTest : public testing::Test {
 protected:
  void Start(const std::vector<std::string>& more = {},
             const std::string& program = "server/sfmamba_server") {
    std::vector<std::string> flags = {
        "--model_repository=" + WriteTinyModel("max_batch_size: 4"),
        "--drain_delay=0s", "--trace_endpoint=" + collector_->url()};
    flags.insert(flags.end(), more.begin(), more.end());
    server_ = std::make_unique<ServerProcess>(flags, program);
    ASSERT_TRUE(server_->WaitUntilServing());
    channel_ = grpc::CreateChannel(server_->address(),
                                   grpc::InsecureChannelCredentials());
    stub_ = v1::VisionService::NewStub(channel_);
  }

  v1::ClassifyRequest Request() const {
    v1::ClassifyRequest request;
    request.set_model("tiny");
    for (int i = 0; i < kImages; ++i) {
      request.add_images()->set_encoded(picture_);
    }
    return request;
  }
  grpc::Status Classify(
      const std::vector<std::pair<std::string, std::string>>& metadata) {
    return Classify(*stub_, metadata);
  }
  grpc::Status Classify(
      v1::VisionService::Stub& stub,
      const std::vector<std::pair<std::string, std::string>>& metadata) {
    grpc::ClientContext context;
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    v1::ClassifyResponse response;
    return stub.Classify(&context, Request(), &response);
  }

  double Metric(const std::string& name) const {
    return Samples(HttpGet(server_->metrics_port(), "/metrics"))[name];
  }

  // Waits until the trace's span "rpc" has arrived, which is exported last.
  // Returns the trace's spans by name.
  std::multimap<std::string, json> SpansOf(int number) {
    std::multimap<std::string, json> found;
    WaitUntil(
        [&] {
          found.clear();
          for (const json& span : collector_->spans()) {
            if (span["traceId"] == Trace(number)) {
              found.emplace(span["name"], span);
            }
          }
          return found.count("rpc") == 1;
        },
        "the spans", kTestPatience);
    return found;
  }

  // Expects the complete spans of one request with kImages images.
  void ExpectTree(int number, const std::string& system,
                  const std::string& method) {
    const std::multimap<std::string, json> spans = SpansOf(number);
    const json rpc = spans.find("rpc")->second;
    EXPECT_EQ(rpc["parentSpanId"], kParent);
    EXPECT_EQ(AttributeOf(rpc, "rpc.system"), system);
    EXPECT_EQ(AttributeOf(rpc, "rpc.method"), method);
    EXPECT_EQ(AttributeOf(rpc, "rpc.grpc.status_code"), "0");
    for (const char* name : {"decode", "queue", "inference", "postprocess"}) {
      EXPECT_EQ(spans.count(name), kImages) << name;
    }
    std::map<std::string, json> batches;  // The keys are span ids.
    for (const auto& [name, span] : spans) {
      if (name == "batch") batches[span["spanId"]] = span;
      if (name == "rpc") continue;
      EXPECT_EQ(span["parentSpanId"], rpc["spanId"]) << name;
      EXPECT_GE(Nanos(span, "startTimeUnixNano"),
                Nanos(rpc, "startTimeUnixNano"));
      EXPECT_LE(Nanos(span, "endTimeUnixNano"), Nanos(rpc, "endTimeUnixNano"));
      EXPECT_LE(Nanos(span, "startTimeUnixNano"),
                Nanos(span, "endTimeUnixNano"));
    }
    size_t linked = 0;
    for (const auto& [id, batch] : batches) {
      linked += batch["links"].size();
      EXPECT_EQ(AttributeOf(batch, "sfmamba.batch_size"),
                absl::StrCat(batch["links"].size()));
      EXPECT_EQ(AttributeOf(batch, "sfmamba.model"), "tiny");
      EXPECT_EQ(AttributeOf(batch, "sfmamba.size_class"), "64x64");
      EXPECT_EQ(AttributeOf(batch, "sfmamba.device").substr(0, 3), "cpu");
    }
    EXPECT_EQ(linked, kImages);
    const auto [begin, end] = spans.equal_range("inference");
    for (auto image = begin; image != end; ++image) {
      const json& link = image->second["links"][0];
      EXPECT_EQ(batches.count(link["spanId"]), 1);
    }
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  const std::string picture_ = server::EncodePng(server::Gradient(64, 64));
  std::unique_ptr<CollectorStandIn> collector_ =
      std::make_unique<CollectorStandIn>();
  std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::VisionService::Stub> stub_;
};

TEST_F(TracingProcessTest, ARequestIsATreeWhateverItCameBy) {
  Start();
  ASSERT_TRUE(Classify({{"traceparent", Traceparent(1)}}).ok());
  ExpectTree(1, "grpc", "Classify");

  json body;
  for (int i = 0; i < kImages; ++i) {
    body["images"].push_back(json({{"encoded", absl::Base64Escape(picture_)}}));
  }
  httplib::Client http("127.0.0.1", server_->http_port());
  const httplib::Result answer =
      http.Post("/v1/models/tiny:classify", {{"traceparent", Traceparent(2)}},
                body.dump(), "application/json");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->status, 200) << answer->body;
  ExpectTree(2, "http", "Classify");

  inference::ModelInferRequest request =
      kserve::BytesRequest(std::vector<std::string>(kImages, picture_));
  request.set_model_name("tiny");
  grpc::ClientContext context;
  context.AddMetadata("traceparent", Traceparent(3));
  inference::ModelInferResponse response;
  const grpc::Status status =
      inference::GRPCInferenceService::NewStub(channel_)->ModelInfer(
          &context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ExpectTree(3, "grpc", "ModelInfer");
}

TEST_F(TracingProcessTest, WhatIsNoTraceContextIsNoTrace) {
  Start();
  const std::string large = std::string(12 << 10, 'x');
  EXPECT_TRUE(Classify({{"traceparent", large}}).ok());
  EXPECT_TRUE(Classify({{"traceparent", "00-00-00-01"}}).ok());
  EXPECT_TRUE(Classify({{"traceparent", Traceparent(1)},
                        {"traceparent", Traceparent(2)}})
                  .ok());
  // gRPC itself refuses calls with too much metadata. The connection is then
  // unusable, because gRPC 1.51 skips the remaining headers, to which later
  // headers refer (CVE-2023-32731).
  grpc::ChannelArguments alone;
  alone.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto other = v1::VisionService::NewStub(grpc::CreateCustomChannel(
      server_->address(), grpc::InsecureChannelCredentials(), alone));
  EXPECT_FALSE(
      Classify(*other, {{"traceparent", Traceparent(3)},
                        {"tracestate", "a=" + std::string(64 << 10, 'x')}})
          .ok());
  EXPECT_TRUE(
      Classify({{"traceparent", Traceparent(4)}, {"tracestate", "a=" + large}})
          .ok());
  EXPECT_TRUE(Classify({{"traceparent", Traceparent(5)},
                        {"tracestate", "a=1"},
                        {"tracestate", "b=2"}})
                  .ok());
  EXPECT_FALSE(SpansOf(4).find("rpc")->second.contains("traceState"));
  EXPECT_EQ(SpansOf(5).find("rpc")->second["traceState"], "a=1,b=2");
  for (const json& span : collector_->spans()) {
    EXPECT_TRUE(span["traceId"] == Trace(4) || span["traceId"] == Trace(5))
        << span;
  }
}

TEST_F(TracingProcessTest, ACollectorThatNeverAnswersHoldsUpNobody) {
  collector_->Hang();
  Start();
  constexpr int kRequests = 1000;
  constexpr int kThreads = 50;
  ASSERT_TRUE(Classify({}).ok());
  const int64_t before = server_->resident_bytes();
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kRequests / kThreads; ++i) {
        answered +=
            Classify({{"traceparent", Traceparent(1 + thread * kThreads + i)}})
                .ok();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, kRequests);
  WaitUntil([&] { return Metric("sfmamba_trace_spans_dropped_total") > 0; },
            "dropped spans to be counted");
  EXPECT_EQ(Metric("sfmamba_trace_spans_exported_total"), 0);
  EXPECT_LT(server_->resident_bytes() - before, 64 << 20);
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0) << server_->output();
}

TEST_F(TracingProcessTest, WhatIsLeftAtTheEndIsHandedOver) {
  Start({"--trace_ratio=1"});
  ASSERT_TRUE(Classify({}).ok());
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0) << server_->output();
  std::string trace;
  for (const json& span : collector_->spans()) trace = span["traceId"];
  EXPECT_NE(server_->output().find(trace), std::string::npos);
  EXPECT_GE(collector_->spans().size(), 1 + 4 * kImages + 1);
}

TEST_F(TracingProcessTest, NoProxyIsUsed) {
  const std::string program = testing::TempDir() + "/behind_a_proxy.sh";
  std::ofstream(program) << "#!/bin/bash\n"
                            "export grpc_proxy=http://127.0.0.1:1\n"
                            "export http_proxy=$grpc_proxy\n"
                            "exec server/sfmamba_server \"$@\"\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  Start({"--trace_ratio=1"}, program);
  ASSERT_TRUE(Classify({}).ok());
  EXPECT_TRUE(collector_->AwaitSpans(4, kPatience)) << server_->output();
}

TEST_F(TracingProcessTest, ACollectorThatIsNotThereIsAWarning) {
  Start({"--trace_ratio=1"});
  collector_ = nullptr;
  ASSERT_TRUE(Classify({}).ok());
  EXPECT_TRUE(server_->WaitForLog("spans are dropped"));
  WaitUntil([&] { return Metric("sfmamba_trace_spans_dropped_total") > 0; },
            "dropped spans to be counted");
}

}  // namespace
}  // namespace sfmamba
