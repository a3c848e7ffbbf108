// Tests ModelInfer through a client, with all kinds of inputs and outputs.

#include <chrono>
#include <thread>

#include "absl/time/time.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/server/picture.h"
#include "tests/testing/patience.h"

namespace sfmamba::kserve {
namespace {

using grpc::StatusCode;
using ModelInferTest = KserveTest;

constexpr int kClasses = server::FakeModel::kClasses;

TEST_F(ModelInferTest, ATensorIsAnsweredWithAllOutputsRaw) {
  Start();
  ModelInferRequest request = Fp32Request();
  request.set_id("seven");
  const ModelInferResponse response = Answer(request);
  EXPECT_EQ(response.model_name(), "fake");
  EXPECT_EQ(response.model_version(), "3");
  EXPECT_EQ(response.id(), "seven");
  ASSERT_EQ(response.outputs_size(), 2);
  ASSERT_EQ(response.raw_output_contents_size(), 2);
  const auto& logits = response.outputs(0);
  EXPECT_EQ(logits.name(), "logits");
  EXPECT_EQ(logits.datatype(), "FP32");
  ASSERT_EQ(logits.shape_size(), 2);
  EXPECT_EQ(logits.shape(0), 1);
  EXPECT_EQ(logits.shape(1), kClasses);
  EXPECT_FALSE(logits.has_contents());
  const auto values = Values<float>(response.raw_output_contents(0));
  ASSERT_EQ(values.size(), kClasses);
  // FakeModel gives class c the sum over i = c, c + 10, ... of
  // value * (1 + i % 7) / 100.
  float expected = 0;
  for (int i = 3; i < kValues; i += 10) expected += 0.25f * (1 + i % 7) / 100;
  EXPECT_EQ(values[3], expected);
  const auto& embedding = response.outputs(1);
  EXPECT_EQ(embedding.name(), "embedding");
  EXPECT_EQ(Values<float>(response.raw_output_contents(1)),
            std::vector<float>({values[0], 1}));
}

// Returns the logits of the sfmamba.v1 API, ordered by class.
std::vector<float> LogitsOf(const v1::ClassifyResult& result) {
  std::vector<float> logits(kClasses);
  for (const v1::Category& category : result.categories()) {
    logits[category.class_id()] = category.score();
  }
  return logits;
}

TEST_F(ModelInferTest, PicturesHaveTheScoresOfTheTypedApi) {
  Start();
  const std::vector<std::string> files = {
      server::EncodePng(server::Gradient(80, 70)),
      server::EncodeJpeg(server::Gradient(200, 64))};
  v1::ClassifyRequest typed;
  typed.mutable_params()->set_score_type(v1::ClassifyParams::LOGIT);
  typed.mutable_params()->set_top_k(kClasses);
  std::vector<float> expected;
  for (const std::string& file : files) {
    typed.clear_images();
    typed.add_images()->set_encoded(file);
    v1::ClassifyResponse answer;
    ASSERT_EQ(Classify(typed, &answer).code, StatusCode::OK);
    const std::vector<float> logits = LogitsOf(answer.results(0));
    expected.insert(expected.end(), logits.begin(), logits.end());
  }
  EXPECT_EQ(Values<float>(Answer(BytesRequest(files)).raw_output_contents(0)),
            expected);
  // Files may also have the shape [n, 1], or be sent as typed contents.
  ModelInferRequest column = BytesRequest(files);
  column.mutable_inputs(0)->add_shape(1);
  EXPECT_EQ(Values<float>(Answer(column).raw_output_contents(0)), expected);
  ModelInferRequest contents = RequestFor("BYTES", {2});
  for (const std::string& file : files) {
    contents.mutable_inputs(0)->mutable_contents()->add_bytes_contents(file);
  }
  const ModelInferResponse response = Answer(contents);
  EXPECT_EQ(response.raw_output_contents_size(), 0);
  const auto& floats = response.outputs(0).contents().fp32_contents();
  EXPECT_EQ(std::vector<float>(floats.begin(), floats.end()), expected);
}

TEST_F(ModelInferTest, EachTypeOfTensorHasTheSameAnswer) {
  Start();
  const ModelInferResponse expected = Answer(Fp32Request(0.25f));
  ModelInferRequest fp16 = RequestFor("FP16", {1, 3, kSide, kSide});
  fp16.add_raw_input_contents(Raw(std::vector<uint16_t>(kValues, 0x3400)));
  EXPECT_EQ(Answer(fp16).raw_output_contents(0),
            expected.raw_output_contents(0));
  ModelInferRequest bf16 = RequestFor("BF16", {1, 3, kSide, kSide});
  bf16.add_raw_input_contents(Raw(std::vector<uint16_t>(kValues, 0x3e80)));
  EXPECT_EQ(Answer(bf16).raw_output_contents(0),
            expected.raw_output_contents(0));
  ModelInferRequest typed = RequestFor("FP32", {1, 3, kSide, kSide});
  for (int i = 0; i < kValues; ++i) {
    typed.mutable_inputs(0)->mutable_contents()->add_fp32_contents(0.25f);
  }
  const ModelInferResponse answer = Answer(typed);
  const auto& logits = answer.outputs(0).contents().fp32_contents();
  EXPECT_EQ(std::vector<float>(logits.begin(), logits.end()),
            Values<float>(expected.raw_output_contents(0)));
}

TEST_F(ModelInferTest, PixelsComeRawOrTyped) {
  Start();
  ModelInferRequest raw = RequestFor("UINT8", {2, 3, kSide, kSide});
  raw.add_raw_input_contents(std::string(kValues, '\x19') +
                             std::string(kValues, '\xe0'));
  const auto logits = Values<float>(Answer(raw).raw_output_contents(0));
  ASSERT_EQ(logits.size(), 2 * kClasses);
  EXPECT_LT(logits[0], logits[kClasses]);
  ModelInferRequest typed = RequestFor("UINT8", {2, 3, kSide, kSide});
  auto* contents = typed.mutable_inputs(0)->mutable_contents();
  for (int i = 0; i < 2 * kValues; ++i) {
    contents->add_uint_contents(i < kValues ? 0x19 : 0xe0);
  }
  const ModelInferResponse answer = Answer(typed);
  const auto& values = answer.outputs(0).contents().fp32_contents();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), logits);
}

TEST_F(ModelInferTest, OutputsComeAsTheyAreAskedFor) {
  Start();
  ModelInferRequest request = Fp32Request();
  request.add_outputs()->set_name("embedding");
  const ModelInferResponse one = Answer(request);
  ASSERT_EQ(one.outputs_size(), 1);
  EXPECT_EQ(one.outputs(0).name(), "embedding");
  request.add_outputs()->set_name("logits");
  const ModelInferResponse both = Answer(request);
  ASSERT_EQ(both.outputs_size(), 2);
  EXPECT_EQ(both.outputs(1).name(), "logits");
  EXPECT_EQ(both.raw_output_contents(1).size(), kClasses * sizeof(float));
}

TEST_F(ModelInferTest, ClassificationNamesTheBestClasses) {
  Start();
  ModelInferRequest request = Fp32Request();
  auto* output = request.add_outputs();
  output->set_name("logits");
  (*output->mutable_parameters())["classification"].set_int64_param(2);
  const ModelInferResponse response = Answer(request);
  const auto logits =
      Values<float>(Answer(Fp32Request()).raw_output_contents(0));
  const int best =
      std::max_element(logits.begin(), logits.end()) - logits.begin();
  char expected[64];
  std::snprintf(expected, sizeof(expected), "%.6f:%d:label %d", logits[best],
                best, best);
  EXPECT_EQ(response.outputs(0).datatype(), "BYTES");
  ASSERT_EQ(response.outputs(0).shape_size(), 2);
  EXPECT_EQ(response.outputs(0).shape(1), 2);
  const std::string& raw = response.raw_output_contents(0);
  ASSERT_GT(raw.size(), 4 + std::strlen(expected));
  EXPECT_EQ(Values<uint32_t>(raw.substr(0, 4))[0], std::strlen(expected));
  EXPECT_EQ(raw.substr(4, std::strlen(expected)), expected);
  // If more classes are requested than the model has, all classes are returned.
  (*request.mutable_outputs(0)->mutable_parameters())["classification"]
      .set_int64_param(1 << 20);
  EXPECT_EQ(Answer(request).outputs(0).shape(1), kClasses);
}

TEST_F(ModelInferTest, ClassificationComesTypedToo) {
  Start();
  ModelInferRequest request = RequestFor("BYTES", {1});
  request.mutable_inputs(0)->mutable_contents()->add_bytes_contents(
      server::EncodePng(server::Gradient(64, 64)));
  auto* output = request.add_outputs();
  output->set_name("logits");
  (*output->mutable_parameters())["classification"].set_int64_param(3);
  const ModelInferResponse response = Answer(request);
  const auto& named = response.outputs(0).contents().bytes_contents();
  ASSERT_EQ(named.size(), 3);
  for (const std::string& text : named) {
    EXPECT_NE(text.find(":label "), std::string::npos) << text;
  }
}

TEST_F(ModelInferTest, DetectionsArePaddedWithZeros) {
  Start(model::VisionTask::kDetection);
  ModelInferRequest request =
      BytesRequest({server::EncodePng(server::WithRed(96, 48, {10, 5, 20, 30})),
                    server::EncodePng(server::WithRed(96, 48, {}))});
  const ModelInferResponse response = Answer(request);
  ASSERT_EQ(response.outputs_size(), 4);
  EXPECT_EQ(response.outputs(1).name(), "boxes");
  const int most = response.outputs(1).shape(1);
  EXPECT_EQ(response.outputs(1).shape(2), 4);
  EXPECT_EQ(Values<int32_t>(response.raw_output_contents(0)),
            std::vector<int32_t>({1, 0}));
  v1::DetectRequest typed;
  typed.add_images()->set_encoded(
      server::EncodePng(server::WithRed(96, 48, {10, 5, 20, 30})));
  const v1::BoundingBox box = DetectOne(typed).detections(0).box();
  const auto boxes = Values<float>(response.raw_output_contents(1));
  ASSERT_EQ(boxes.size(), 2 * most * 4);
  EXPECT_EQ(boxes[0], box.x_min());
  EXPECT_EQ(boxes[1], box.y_min());
  EXPECT_EQ(boxes[2], box.x_max());
  EXPECT_EQ(boxes[3], box.y_max());
  for (size_t i = 4; i < boxes.size(); ++i) ASSERT_EQ(boxes[i], 0);
  const auto scores = Values<float>(response.raw_output_contents(2));
  EXPECT_EQ(scores[0], server::FakeModel::kScore);
  EXPECT_EQ(scores[1], 0);
  EXPECT_EQ(Values<int32_t>(response.raw_output_contents(3))[0], 1);
  // The score threshold of the request replaces the default threshold.
  (*request.mutable_parameters())["score_threshold"].set_double_param(0.8);
  EXPECT_EQ(Values<int32_t>(Answer(request).raw_output_contents(0))[0], 0);
  (*request.mutable_parameters())["score_threshold"].set_int64_param(1);
  EXPECT_EQ(Values<int32_t>(Answer(request).raw_output_contents(0))[0], 0);
}

TEST_F(ModelInferTest, TypedIntegersAreTheRawOnes) {
  Start(model::VisionTask::kDetection);
  const std::string file =
      server::EncodePng(server::WithRed(96, 48, {10, 5, 20, 30}));
  const ModelInferResponse raw = Answer(BytesRequest({file}));
  ModelInferRequest request = RequestFor("BYTES", {1, 1});
  request.mutable_inputs(0)->mutable_contents()->add_bytes_contents(file);
  const ModelInferResponse typed = Answer(request);
  const auto& classes = typed.outputs(3).contents().int_contents();
  EXPECT_EQ(std::vector<int32_t>(classes.begin(), classes.end()),
            Values<int32_t>(raw.raw_output_contents(3)));
  EXPECT_EQ(typed.outputs(0).contents().int_contents(0), 1);
}

TEST_F(ModelInferTest, AClassMapHasThePicturesSize) {
  Start(model::VisionTask::kSegmentation);
  const std::string file =
      server::EncodePng(server::WithRed(96, 48, {10, 5, 20, 30}));
  v1::SegmentRequest typed;
  typed.add_images()->set_encoded(file);
  typed.mutable_params()->set_encoding(v1::SegmentParams::RAW_INDEX);
  const std::string expected = SegmentOne(typed).raw().data();
  const ModelInferResponse response = Answer(BytesRequest({file}));
  EXPECT_EQ(response.outputs(0).name(), "class_map");
  EXPECT_EQ(response.outputs(0).datatype(), "UINT8");
  EXPECT_EQ(response.outputs(0).shape(1), 48);
  EXPECT_EQ(response.outputs(0).shape(2), 96);
  EXPECT_EQ(response.raw_output_contents(0), expected);
  ModelInferRequest contents = RequestFor("BYTES", {1});
  contents.mutable_inputs(0)->mutable_contents()->add_bytes_contents(file);
  const ModelInferResponse answer = Answer(contents);
  const auto& map = answer.outputs(0).contents().uint_contents();
  EXPECT_EQ(std::string(map.begin(), map.end()), expected);
  // A request must not contain several pictures, because their maps may differ
  // in size.
  const server::Ending two = Infer(BytesRequest({file, file}));
  EXPECT_EQ(two.code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(two.field, "inputs[0].shape");
}

// ---- Behaviour that ModelInfer shares with the other transports ----

TEST_F(ModelInferTest, AFullQueueSaysWhenToComeBack) {
  Start("max_batch_size: 1 max_queue_items: 1");
  server_->gate().Close();
  server::Call running(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();
  server::Call queued(*server_, server::GreyRequest(2));
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 1), 1);
  const server::Ending ending = Infer(Fp32Request());
  EXPECT_EQ(ending.code, StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ending.reason, "QUEUE_FULL");
  EXPECT_TRUE(ending.has_retry_info);
  EXPECT_EQ(ending.pushback, "100");
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  EXPECT_EQ(queued.Wait().code, StatusCode::OK);
}

TEST_F(ModelInferTest, TheCallersAddressIsKnown) {
  Start();
  EXPECT_EQ(Infer(Fp32Request()).code, StatusCode::OK);
  const std::string log = server_->Log();
  const size_t line = log.find("sets no deadlines");
  ASSERT_NE(line, std::string::npos) << log;
  EXPECT_NE(log.substr(line, log.find('\n', line) - line)
                .find("\"client\":\"ipv4:127.0.0.1\""),
            std::string::npos);
}

TEST_F(ModelInferTest, TheTimeoutEndsTheWait) {
  Start("max_batch_size: 1");
  server_->gate().Close();
  server::Call running(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();
  ModelInferRequest request = Fp32Request();
  (*request.mutable_parameters())["timeout"].set_int64_param(20'000);
  const server::Ending ending = Infer(request);
  EXPECT_EQ(ending.code, StatusCode::DEADLINE_EXCEEDED) << ending.message;
  EXPECT_EQ(ending.reason, "EXPIRED_IN_QUEUE");
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
}

TEST_F(ModelInferTest, ThePriorityIsTheQueues) {
  Start("max_batch_size: 1");
  server_->gate().Close();
  server::Call running(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();
  const auto waits = [this](int level, const std::string& name) {
    ModelInferRequest request = Fp32Request();
    (*request.mutable_parameters())["priority"].set_uint64_param(level);
    std::thread call(
        [this, request] { EXPECT_EQ(Infer(request).code, StatusCode::OK); });
    EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items",
                                  {"priority=\"" + name + "\""}, 1),
              1);
    return call;
  };
  std::thread high = waits(1, "high");
  std::thread low = waits(3, "low");
  std::thread standard = waits(0, "normal");
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  high.join();
  low.join();
  standard.join();
}

TEST_F(ModelInferTest, CancellingFreesThePlace) {
  Start("max_batch_size: 1");
  server_->gate().Close();
  server::Call running(*server_, server::GreyRequest(1));
  server_->gate().WaitForBatch();
  grpc::ClientContext context;
  ModelInferRequest request = Fp32Request();
  ModelInferResponse response;
  absl::Notification done;
  grpc::Status status;
  stub_->async()->ModelInfer(&context, &request, &response,
                             [&](grpc::Status ended) {
                               status = ended;
                               done.Notify();
                             });
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 1), 1);
  context.TryCancel();
  WaitFor(done, "the end of the call");
  EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 0), 0);
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
}

TEST_F(ModelInferTest, NothingIsHeldOnceTheAnswersAreSent) {
  Start();
  for (int i = 0; i < 3; ++i) Answer(Fp32Request());
  Infer(RequestFor("FP32", {1, 3, -1, 2}));
  EXPECT_EQ(server_->WaitForSum("sfmamba_memory_held_bytes", {}, 0), 0);
  EXPECT_EQ(server_->WaitForSum("sfmamba_in_flight_requests", {}, 0), 0);
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {R"(method="ModelInfer")", R"(code="OK")"}),
            3);
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {R"(method="ModelInfer")", R"(model="fake")",
                          R"(reason="INVALID_FIELD")"}),
            1);
}

TEST_F(ModelInferTest, AModelThatIsNotThereOrNotReadyIsNamed) {
  Start("", v1::ServerConfig(), /*load=*/false);
  ModelInferRequest request = Fp32Request();
  EXPECT_EQ(Infer(request).reason, "MODEL_NOT_READY");
  request.set_model_version("4");
  EXPECT_EQ(Infer(request).reason, "MODEL_NOT_FOUND");
  request.set_model_version("three");
  EXPECT_EQ(Infer(request).reason, "MODEL_NOT_FOUND");
  request.set_model_version("");
  request.set_model_name("other");
  EXPECT_EQ(Infer(request).reason, "MODEL_NOT_FOUND");
  request.set_model_name("models/fake");
  EXPECT_EQ(Infer(request).reason, "MODEL_NOT_FOUND");
  request.set_model_name("");
  EXPECT_EQ(Infer(request).field, "model_name");
}

}  // namespace
}  // namespace sfmamba::kserve
