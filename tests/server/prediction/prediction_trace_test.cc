// Tests the spans of a prediction.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/errors/reasons.h"
#include "server/tracing/tracer.h"
#include "tests/server/prediction/prediction_fixture.h"
#include "tests/server/tracing/collector_stand_in.h"

namespace sfmamba::prediction {
namespace {

using nlohmann::json;
using tracing::AttributeOf;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kOther[] = "11111111111111111111111111111111";
constexpr char kSampled[] =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kNotSampled[] =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

int64_t Nanos(const json& span, const char* key) {
  int64_t nanos = 0;
  EXPECT_TRUE(absl::SimpleAtoi(span[key].get<std::string>(), &nanos));
  return nanos;
}
int64_t Start(const json& span) { return Nanos(span, "startTimeUnixNano"); }
int64_t End(const json& span) { return Nanos(span, "endTimeUnixNano"); }

class PredictionTraceTest : public PredictionTest {
 protected:
  PredictionTraceTest() {
    tracing::Collector::Options options;
    options.endpoint = collector_.url();
    tracer_ = std::make_unique<tracing::Tracer>(
        0, std::make_unique<tracing::Collector>(std::move(options)));
    environment_->tracer = tracer_.get();
  }

  // Runs a prediction and returns its status.
  absl::Status Predict(PredictionRequest request,
                       const absl::Status& serving = absl::OkStatus()) {
    KeptResponse response;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(serving);
    return response.Wait();
  }
  PredictionRequest Sampled(int images) {
    PredictionRequest request = Request(images);
    request.call.traceparent = kSampled;
    return request;
  }

  void AwaitQueue(const std::string& model, int images) {
    WaitUntil(
        [&] {
          return Value("sfmamba_queue_items{model=" + model +
                       ",priority=normal}") == images;
        },
        "an image in the queue");
  }

  // Returns when the inference of each trace's last image began.
  std::map<std::string, int64_t> InferenceStarts() {
    std::map<std::string, int64_t> starts;
    for (const auto& [name, span] : Spans()) {
      if (name != "inference") continue;
      int64_t& start = starts[span["traceId"]];
      start = std::max(start, Start(span));
    }
    return starts;
  }

  // Stops the exporter and returns all spans by name.
  std::multimap<std::string, json> Spans() {
    EXPECT_TRUE(tracer_->Stop(kPatience));
    std::multimap<std::string, json> spans;
    for (const json& span : collector_.spans()) {
      spans.emplace(span["name"], span);
    }
    return spans;
  }

  tracing::CollectorStandIn collector_;
  std::unique_ptr<tracing::Tracer> tracer_;
};

TEST_F(PredictionTraceTest, EachImageHasASpanForEachStage) {
  PredictionRequest request = Sampled(3);
  request.call.tracestate = "rojo=1";
  request.request_id = "mine";
  request.call.system = "http";
  ASSERT_EQ(Predict(std::move(request)), absl::OkStatus());
  const auto spans = Spans();
  EXPECT_EQ(spans.size(), 1 + 4 * 3 + spans.count("batch"));
  ASSERT_EQ(spans.count("rpc"), 1);
  const json rpc = spans.find("rpc")->second;
  EXPECT_EQ(rpc["traceId"], kTrace);
  EXPECT_EQ(rpc["parentSpanId"], "00f067aa0ba902b7");
  EXPECT_EQ(rpc["kind"], 2);
  EXPECT_EQ(rpc["traceState"], "rojo=1");
  EXPECT_EQ(AttributeOf(rpc, "rpc.system"), "http");
  EXPECT_EQ(AttributeOf(rpc, "rpc.method"), "Classify");
  EXPECT_EQ(AttributeOf(rpc, "rpc.grpc.status_code"), "0");
  EXPECT_EQ(AttributeOf(rpc, "sfmamba.model"), "fake");
  EXPECT_EQ(AttributeOf(rpc, "sfmamba.version"), "3");
  EXPECT_EQ(AttributeOf(rpc, "sfmamba.images"), "3");
  EXPECT_EQ(AttributeOf(rpc, "sfmamba.request_id"), "mine");
  // The keys are the numbers of the images.
  std::map<std::string, std::map<std::string, json>> images;
  for (const auto& [name, span] : spans) {
    EXPECT_EQ(span["traceId"], kTrace) << name;
    EXPECT_LE(Start(span), End(span)) << name;
    EXPECT_GE(Start(span), Start(rpc)) << name;
    EXPECT_LE(End(span), End(rpc)) << name;
    if (name == "rpc") continue;
    EXPECT_EQ(span["parentSpanId"], rpc["spanId"]) << name;
    if (name != "batch")
      images[AttributeOf(span, "sfmamba.image")][name] = span;
  }
  ASSERT_EQ(images.size(), 3);
  for (auto& [i, stages] : images) {
    ASSERT_EQ(stages.size(), 4) << i;
    EXPECT_LE(End(stages["decode"]), Start(stages["queue"]));
    EXPECT_EQ(End(stages["queue"]), Start(stages["inference"]));
    EXPECT_LE(End(stages["inference"]), Start(stages["postprocess"]));
  }
}

TEST_F(PredictionTraceTest, EachSpanHasAnIdOfItsOwn) {
  ASSERT_EQ(Predict(Sampled(2)), absl::OkStatus());
  std::set<std::string> ids = {"0000000000000000"};
  for (const auto& [name, span] : Spans()) {
    EXPECT_TRUE(ids.insert(span["spanId"]).second) << name;
  }
}

TEST_F(PredictionTraceTest, TheSpanOfDecodingIsAsLongAsItsTimes) {
  PredictionRequest request = Sampled(1);
  request.options.include_timing = true;
  KeptResponse response;
  {
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    ASSERT_EQ(response.Wait(), absl::OkStatus());
  }
  const absl::Duration told = base::FromProto(response.timing_->decode()) +
                              base::FromProto(response.timing_->preprocess());
  const json decode = Spans().find("decode")->second;
  EXPECT_NEAR(End(decode) - Start(decode), absl::ToInt64Nanoseconds(told), 2);
}

TEST_F(PredictionTraceTest, EachTileHasASpanOfItsOwn) {
  PredictionRequest request = LargeRequest(1, 144, 96);
  request.call.traceparent = kSampled;
  request.model = "masks";
  request.params.emplace<v1::DetectParams>().mutable_tiles()->set_overlap(0);
  ASSERT_EQ(Predict(std::move(request)), absl::OkStatus());
  const auto spans = Spans();
  EXPECT_EQ(spans.count("queue"), 7) << "six tiles and the picture";
  EXPECT_EQ(spans.count("inference"), 7);
  EXPECT_EQ(spans.count("decode"), 1);
  EXPECT_EQ(spans.count("postprocess"), 1);
}

TEST_F(PredictionTraceTest, AMapOfWindowsIsPostprocessedFromItsFirstRowOn) {
  PredictionRequest request = LargeRequest(1, 48, 96);
  request.call.traceparent = kSampled;
  request.model = "maps";
  request.params.emplace<v1::SegmentParams>().mutable_slide();
  ASSERT_EQ(Predict(std::move(request)), absl::OkStatus());
  const auto spans = Spans();
  EXPECT_EQ(spans.count("inference"), 3);
  EXPECT_EQ(spans.count("postprocess"), 1);
}

TEST_F(PredictionTraceTest, TheClassificationOfCropsIsBelowItsDetection) {
  const auto detect = [this](const char* traceparent) {
    PredictionRequest request = Request(1);
    request.method = observability::Method::kDetect;
    request.request_id = "mine";
    request.call.traceparent = traceparent;
    request.model = "masks";
    v1::DetectParams params;
    params.set_max_detections(2);
    params.mutable_crops()->set_model("fake");
    request.params = params;
    return Predict(std::move(request));
  };
  ASSERT_EQ(detect(kNotSampled), absl::OkStatus());
  ASSERT_EQ(detect(kSampled), absl::OkStatus());
  std::map<std::string, json> calls;
  const auto spans = Spans();
  EXPECT_EQ(spans.count("rpc"), 2);
  for (auto [it, end] = spans.equal_range("rpc"); it != end; ++it) {
    calls[AttributeOf(it->second, "rpc.method")] = it->second;
  }
  ASSERT_EQ(calls.size(), 2);
  EXPECT_EQ(calls["Classify"]["traceId"], kTrace);
  EXPECT_EQ(AttributeOf(calls["Classify"], "sfmamba.request_id"), "mine");
  EXPECT_EQ(calls["Classify"]["parentSpanId"], calls["Detect"]["spanId"]);
}

TEST_F(PredictionTraceTest, AnImageThatReachedNoStageSaysNothingOfAnother) {
  for (const int malformed : {0, 1}) {
    malformed_ = malformed;
    PredictionRequest request = Sampled(2);
    request.options.allow_partial_results = true;
    ASSERT_EQ(Predict(std::move(request)), absl::OkStatus());
  }
  const auto spans = Spans();
  EXPECT_EQ(spans.count("inference"), 2);
  for (const auto& [name, span] : spans) {
    EXPECT_EQ(AttributeOf(span, "sfmamba.reason"), "") << name;
  }
}

// An image without a client deadline has the server's default deadline of 30 s.
// It therefore goes before an image whose client allows 100 s.
TEST_F(PredictionTraceTest, WithoutADeadlineAnImageGoesBeforeAFarOne) {
  gate_.Close();
  KeptResponse running_response, far_response, none_response;
  Prediction running(*environment_, Request(1), &running_response);
  running.Start(absl::OkStatus());
  gate_.WaitForBatch();
  PredictionRequest far_request = Sampled(1), none_request = Sampled(1);
  far_request.call.deadline = base::SteadyNow() + absl::Seconds(100);
  none_request.call.traceparent =
      absl::StrCat("00-", kOther, "-00f067aa0ba902b7-01");
  {
    Prediction far(*environment_, std::move(far_request), &far_response);
    far.Start(absl::OkStatus());
    AwaitQueue("fake", 1);
    Prediction none(*environment_, std::move(none_request), &none_response);
    none.Start(absl::OkStatus());
    AwaitQueue("fake", 2);
    gate_.Open();
    EXPECT_EQ(far_response.Wait(), absl::OkStatus());
    EXPECT_EQ(none_response.Wait(), absl::OkStatus());
    EXPECT_EQ(running_response.Wait(), absl::OkStatus());
  }
  std::map<std::string, int64_t> starts = InferenceStarts();
  ASSERT_EQ(starts.size(), 2);
  EXPECT_LT(starts[kOther], starts[kTrace]);
}

TEST_F(PredictionTraceTest, ACallersOnlyImageRunsBeforeAnothersMany) {
  gate_.Close();
  KeptResponse running_response, many_response, one_response;
  Prediction running(*environment_, Request(1), &running_response);
  running.Start(absl::OkStatus());
  gate_.WaitForBatch();
  PredictionRequest one_request = Sampled(1);
  one_request.call.peer = "ipv4:10.0.0.7:1";
  one_request.call.traceparent =
      absl::StrCat("00-", kOther, "-00f067aa0ba902b7-01");
  {
    Prediction many(*environment_, Sampled(8), &many_response);
    many.Start(absl::OkStatus());
    AwaitQueue("fake", 8);
    Prediction one(*environment_, std::move(one_request), &one_response);
    one.Start(absl::OkStatus());
    AwaitQueue("fake", 9);
    gate_.Open();
    EXPECT_EQ(many_response.Wait(), absl::OkStatus());
    EXPECT_EQ(one_response.Wait(), absl::OkStatus());
    EXPECT_EQ(running_response.Wait(), absl::OkStatus());
  }
  std::map<std::string, int64_t> starts = InferenceStarts();
  ASSERT_EQ(starts.size(), 2);
  EXPECT_LT(starts[kOther], starts[kTrace]);
}

TEST_F(PredictionTraceTest, AnImageWhoseAnswerTakesLongGoesFirst) {
  const auto detect = [this](PredictionRequest request, int masks) {
    request.model = "masks";
    auto& params = request.params.emplace<v1::DetectParams>();
    params.set_max_detections(std::max(masks, 1));
    if (masks > 0) params.set_mask_encoding(v1::DetectParams::COCO_RLE);
    return request;
  };
  mask_gate_.Close();
  KeptResponse running_response, short_response, long_response;
  Prediction running(*environment_, detect(Request(1), 0), &running_response);
  running.Start(absl::OkStatus());
  mask_gate_.WaitForBatch();
  const absl::Time deadline = base::SteadyNow() + absl::Seconds(100);
  PredictionRequest short_request = detect(Sampled(1), 0);
  // The input of the long request has another size than the input of the short
  // request. The two inputs therefore need different batches.
  PredictionRequest long_request = detect(LargeRequest(1, 1000, 2000), 20);
  short_request.call.deadline = long_request.call.deadline = deadline;
  long_request.call.traceparent =
      absl::StrCat("00-", kOther, "-00f067aa0ba902b7-01");
  {
    Prediction first(*environment_, std::move(short_request), &short_response);
    first.Start(absl::OkStatus());
    AwaitQueue("masks", 1);
    Prediction second(*environment_, std::move(long_request), &long_response);
    second.Start(absl::OkStatus());
    AwaitQueue("masks", 2);
    mask_gate_.Open();
    EXPECT_EQ(short_response.Wait(), absl::OkStatus());
    EXPECT_EQ(long_response.Wait(), absl::OkStatus());
    EXPECT_EQ(running_response.Wait(), absl::OkStatus());
  }
  std::map<std::string, int64_t> starts = InferenceStarts();
  ASSERT_EQ(starts.size(), 2);
  EXPECT_LT(starts[kOther], starts[kTrace]);
}

TEST_F(PredictionTraceTest, ABatchAndItsImagesNameEachOther) {
  ASSERT_EQ(Predict(Sampled(1)), absl::OkStatus());
  const auto spans = Spans();
  ASSERT_EQ(spans.count("batch"), 1);
  const json batch = spans.find("batch")->second;
  const json inference = spans.find("inference")->second;
  ASSERT_EQ(batch["links"].size(), 1);
  EXPECT_EQ(batch["links"][0]["spanId"], inference["spanId"]);
  ASSERT_EQ(inference["links"].size(), 1);
  EXPECT_EQ(inference["links"][0]["spanId"], batch["spanId"]);
  EXPECT_EQ(Start(batch), Start(inference));
  EXPECT_GE(End(batch), End(inference));
  EXPECT_EQ(AttributeOf(batch, "sfmamba.model"), "fake");
  EXPECT_EQ(AttributeOf(batch, "sfmamba.version"), "3");
  EXPECT_EQ(AttributeOf(batch, "sfmamba.batch_size"), "1");
  EXPECT_EQ(AttributeOf(batch, "sfmamba.padded_batch_size"), "1");
  EXPECT_NE(AttributeOf(batch, "sfmamba.fold_factor"), "");
  EXPECT_EQ(AttributeOf(batch, "sfmamba.device"), "fake");
  EXPECT_EQ(
      AttributeOf(batch, "sfmamba.size_class"),
      absl::StrCat(server::FakeModel::kSide, "x", server::FakeModel::kSide));
}

TEST_F(PredictionTraceTest, TheCallersFlagDecides) {
  PredictionRequest request = Request(1);
  request.call.traceparent = kNotSampled;
  tracer_->set_ratio(1);
  ASSERT_EQ(Predict(std::move(request)), absl::OkStatus());
  tracer_->set_ratio(0);
  ASSERT_EQ(Predict(Request(1)), absl::OkStatus());
  EXPECT_TRUE(Spans().empty());
}

TEST_F(PredictionTraceTest, ARequestThatIsRefusedHasItsOwnSpanAlone) {
  EXPECT_FALSE(Predict(Sampled(1), server::Draining("the server")).ok());
  const auto spans = Spans();
  ASSERT_EQ(spans.size(), 1);
  const json rpc = spans.begin()->second;
  EXPECT_EQ(rpc["name"], "rpc");
  EXPECT_EQ(AttributeOf(rpc, "rpc.grpc.status_code"), "14");
  EXPECT_EQ(AttributeOf(rpc, "sfmamba.reason"), "DRAINING");
  EXPECT_EQ(rpc["status"]["code"], 2);
}

TEST_F(PredictionTraceTest, ACallersFaultIsNoErrorOfTheServer) {
  malformed_ = 1;
  EXPECT_FALSE(Predict(Sampled(2)).ok());
  const auto spans = Spans();
  ASSERT_EQ(spans.size(), 1);
  const json rpc = spans.begin()->second;
  EXPECT_EQ(AttributeOf(rpc, "rpc.grpc.status_code"), "3");
  EXPECT_EQ(AttributeOf(rpc, "sfmamba.reason"), "INVALID_FIELD");
  EXPECT_FALSE(rpc.contains("status"));
}

TEST_F(PredictionTraceTest, TheServersFaultsAreErrorsWhateverTheirCode) {
  using Code = absl::StatusCode;
  const std::set<Code> faults = {Code::kInternal,      Code::kUnknown,
                                 Code::kDataLoss,      Code::kUnavailable,
                                 Code::kUnimplemented, Code::kDeadlineExceeded};
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<Code>(code), "why");
    EXPECT_EQ(Predict(Sampled(1), status).code(), status.code());
  }
  std::set<Code> errors;
  for (const auto& [name, span] : Spans()) {
    if (!span.contains("status")) continue;
    EXPECT_EQ(span["status"]["message"], "why");
    int code = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(AttributeOf(span, "rpc.grpc.status_code"), &code));
    errors.insert(static_cast<Code>(code));
  }
  EXPECT_EQ(errors, faults);
}

TEST_F(PredictionTraceTest, AnImageThatExpiresEndsInTheStageThatItReached) {
  gate_.Close();
  KeptResponse first_response;
  Prediction first(*environment_, Request(1), &first_response);
  first.Start(absl::OkStatus());
  gate_.WaitForBatch();
  PredictionRequest request = Sampled(1);
  request.options.max_queue_wait = absl::Milliseconds(50);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Predict(std::move(request))));
  gate_.Open();
  EXPECT_EQ(first_response.Wait(), absl::OkStatus());
  const auto spans = Spans();
  EXPECT_EQ(spans.count("inference"), 0);
  EXPECT_EQ(spans.count("batch"), 0);
  ASSERT_EQ(spans.count("queue"), 1);
  const json queue = spans.find("queue")->second;
  EXPECT_EQ(AttributeOf(queue, "sfmamba.reason"), "EXPIRED_IN_QUEUE");
  EXPECT_LT(Start(queue), End(queue));
  EXPECT_LE(End(queue), End(spans.find("rpc")->second));
}

}  // namespace
}  // namespace sfmamba::prediction
