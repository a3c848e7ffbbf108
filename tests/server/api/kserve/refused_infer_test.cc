// Tests the requests that ModelInfer refuses. The error must name the field and
// the reason. The server must not trust any number in a message.

#include <functional>
#include <limits>

#include "absl/synchronization/notification.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/server/picture.h"
#include "tests/testing/patience.h"

namespace sfmamba::kserve {
namespace {

using grpc::StatusCode;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

class RefusedInferTest : public KserveTest {
 protected:
  void ExpectRefused(const ModelInferRequest& request, const std::string& field,
                     const std::string& reason = "INVALID_FIELD") {
    const server::Ending ending = Infer(request);
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT) << ending.message;
    EXPECT_EQ(ending.reason, reason) << ending.message;
    EXPECT_EQ(ending.field, field) << ending.message;
    EXPECT_NE(ending.message.find(field), std::string::npos) << ending.message;
    EXPECT_EQ(ending.message.find("images["), std::string::npos)
        << "a field of another API: " << ending.message;
  }
};

TEST_F(RefusedInferTest, ShapesThatAreNone) {
  Start();
  const std::vector<std::vector<int64_t>> shapes = {
      {},
      {1},
      {3, kSide, kSide},
      {1, 3, kSide, kSide, 1},
      {0, 3, kSide, kSide},
      {-1, 3, kSide, kSide},
      {1, 3, -1, -1},
      {1, 4, kSide, kSide},
      {1, 3, 0, kSide},
      {1, 3, kHuge, kHuge},
      {kHuge, 3, kSide, kSide},
      {int64_t{1} << 32, 3, int64_t{1} << 32, 1},
      {std::numeric_limits<int64_t>::min(), 3, kSide, kSide},
      std::vector<int64_t>(5000, 1),
  };
  for (const auto& shape : shapes) {
    ModelInferRequest request = RequestFor("FP32", shape);
    request.add_raw_input_contents(std::string(kValues * 4, '\0'));
    ExpectRefused(request, "inputs[0].shape");
  }
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {}, {0}, {-1}, {1, 2}, {1, 1, 1}, {2, -1}}) {
    ModelInferRequest request = RequestFor("BYTES", shape);
    request.add_raw_input_contents(RawElement("x"));
    ExpectRefused(request, "inputs[0].shape");
  }
  ExpectAlive();
}

TEST_F(RefusedInferTest, TensorsThatTheModelDoesNotTake) {
  Start();
  ModelInferRequest request = RequestFor("FP32", {1, 3, 8, 8});
  request.add_raw_input_contents(std::string(3 * 8 * 8 * 4, '\0'));
  ExpectRefused(request, "inputs[0][0].tensor.shape");
  ModelInferRequest nan = Fp32Request(std::numeric_limits<float>::quiet_NaN());
  ExpectRefused(nan, "inputs[0][0].tensor.data");
}

TEST_F(RefusedInferTest, MoreImagesThanAllowed) {
  Start();
  ModelInferRequest request = RequestFor("UINT8", {65, 3, kSide, kSide});
  request.add_raw_input_contents(std::string(65 * kValues, '\0'));
  ExpectRefused(request, "inputs[0]", "TOO_MANY_IMAGES");
  // The number of pictures is limited even if the shape says a huge number.
  ModelInferRequest files = RequestFor("BYTES", {kHuge});
  files.add_raw_input_contents(RawElement("x"));
  ExpectRefused(files, "inputs[0]", "TOO_MANY_IMAGES");
  ModelInferRequest most = RequestFor("UINT8", {64, 3, kSide, kSide});
  most.add_raw_input_contents(std::string(64 * kValues, '\0'));
  Answer(most);
}

TEST_F(RefusedInferTest, RawContentsOfAnotherSize) {
  Start();
  for (const int64_t bytes : {int64_t{0}, 4 * kValues - 1, 4 * kValues + 1}) {
    ModelInferRequest request = RequestFor("FP32", {1, 3, kSide, kSide});
    request.add_raw_input_contents(std::string(bytes, '\0'));
    ExpectRefused(request, "raw_input_contents[0]");
  }
}

TEST_F(RefusedInferTest, ElementsThatEndBeyondTheEnd) {
  Start();
  const std::string file = server::EncodePng(server::Gradient(64, 64));
  const std::vector<std::string> contents = {
      "",
      "abc",                                        // Too short for a length.
      std::string("\xff\xff\xff\xff", 4),           // The length is 4 GiB.
      std::string("\xff\xff\xff\x7f", 4) + file,    // The length is 2 GiB.
      RawElement(file).substr(0, file.size() + 3),  // One byte is missing.
      RawElement(file) + "x",                       // One byte is left over.
      RawElement(file) + RawElement(file),          // One element is left over.
  };
  for (const std::string& raw : contents) {
    ModelInferRequest request = RequestFor("BYTES", {1});
    request.add_raw_input_contents(raw);
    ExpectRefused(request, "raw_input_contents[0]");
  }
  ModelInferRequest two = RequestFor("BYTES", {2});
  two.add_raw_input_contents(RawElement(file));
  ExpectRefused(two, "raw_input_contents[0]");
  ExpectAlive();
}

TEST_F(RefusedInferTest, FilesThatAreNoPictures) {
  Start();
  ExpectRefused(
      BytesRequest({server::EncodePng(server::Gradient(64, 64)), "text"}),
      "inputs[0][1].encoded", "IMAGE_FORMAT_UNSUPPORTED");
  ExpectRefused(BytesRequest({""}), "inputs[0][0].encoded",
                "IMAGE_FORMAT_UNSUPPORTED");
}

TEST_F(RefusedInferTest, RawAndTypedContentsMixed) {
  Start();
  ModelInferRequest both = Fp32Request();
  both.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  ExpectRefused(both, "raw_input_contents");
  ModelInferRequest surplus = Fp32Request();
  surplus.add_raw_input_contents("");
  ExpectRefused(surplus, "raw_input_contents");
  ExpectRefused(RequestFor("FP32", {1, 3, kSide, kSide}), "inputs[0].contents");
}

TEST_F(RefusedInferTest, TypedContentsOfAnotherTypeOrNumber) {
  Start();
  const auto refused =
      [this](const std::string& type, const std::vector<int64_t>& shape,
             const std::function<void(inference::InferTensorContents*)>& fill) {
        ModelInferRequest request = RequestFor(type, shape);
        fill(request.mutable_inputs(0)->mutable_contents());
        ExpectRefused(request, "inputs[0].contents");
      };
  const std::vector<int64_t> shape = {1, 3, kSide, kSide};
  refused("FP32", shape, [](auto* contents) {
    for (int i = 0; i < kValues - 1; ++i) contents->add_fp32_contents(0);
  });
  refused("FP32", shape, [](auto* contents) {
    for (int i = 0; i < kValues + 1; ++i) contents->add_fp32_contents(0);
  });
  refused("FP32", shape, [](auto* contents) {
    for (int i = 0; i < kValues; ++i) contents->add_fp64_contents(0);
  });
  refused("FP16", shape, [](auto* contents) {
    for (int i = 0; i < kValues; ++i) contents->add_fp32_contents(0);
  });
  refused("UINT8", shape, [](auto* contents) {
    for (int i = 0; i < kValues; ++i) contents->add_uint_contents(256);
  });
  refused("UINT8", shape, [](auto* contents) {
    for (int i = 0; i < kValues; ++i) contents->add_int_contents(1);
  });
  refused("UINT8", {64, 3, kSide, kSide},
          [](auto* contents) { contents->add_uint_contents(1); });
  refused("FP32", {4, 3, kSide, kSide}, [](auto* contents) {
    for (int i = 0; i < kValues; ++i) contents->add_fp32_contents(0);
  });
  refused("BYTES", {2},
          [](auto* contents) { contents->add_bytes_contents("x"); });
  refused("BYTES", {1}, [](auto* contents) {
    for (int i = 0; i < 1000; ++i) contents->add_bytes_contents("");
  });
}

TEST_F(RefusedInferTest, InputsThatTheModelDoesNotHave) {
  Start();
  ModelInferRequest none;
  none.set_model_name("fake");
  ExpectRefused(none, "inputs");
  ModelInferRequest twice = Fp32Request();
  *twice.add_inputs() = twice.inputs(0);
  ExpectRefused(twice, "inputs");
  ModelInferRequest name = Fp32Request();
  name.mutable_inputs(0)->set_name("data");
  ExpectRefused(name, "inputs[0].name");
  for (const char* type : {"", "fp32", "INT64", "STRING", "FP64"}) {
    ModelInferRequest request = Fp32Request();
    request.mutable_inputs(0)->set_datatype(type);
    ExpectRefused(request, "inputs[0].datatype");
  }
}

TEST_F(RefusedInferTest, OutputsThatTheModelDoesNotHave) {
  Start();
  ModelInferRequest request = Fp32Request();
  request.add_outputs()->set_name("logits");
  request.add_outputs()->set_name("scores");
  ExpectRefused(request, "outputs[1].name");
  request.mutable_outputs(1)->set_name("logits");
  ExpectRefused(request, "outputs[1].name");
  // More than 16 outputs are refused before their names are read.
  while (request.outputs_size() < 16) request.add_outputs()->set_name("logits");
  ExpectRefused(request, "outputs[1].name");
  request.add_outputs()->set_name("logits");
  ExpectRefused(request, "outputs");
  ModelInferRequest classes = Fp32Request();
  classes.add_outputs()->set_name("embedding");
  auto& parameters = *classes.mutable_outputs(0)->mutable_parameters();
  parameters["classification"].set_int64_param(1);
  ExpectRefused(classes, "outputs[0].parameters.classification");
  classes.mutable_outputs(0)->set_name("logits");
  for (const int64_t count :
       {int64_t{0}, int64_t{-1}, (int64_t{1} << 20) + 1, kHuge}) {
    parameters["classification"].set_int64_param(count);
    ExpectRefused(classes, "outputs[0].parameters.classification");
  }
}

TEST_F(RefusedInferTest, ParametersOfAnotherTypeOrServer) {
  Start();
  using Fill = std::function<void(inference::InferParameter*)>;
  const std::vector<std::pair<std::string, Fill>> refused = {
      {"priority", [](auto* p) { p->set_int64_param(-1); }},
      {"priority", [](auto* p) { p->set_string_param("high"); }},
      {"timeout", [](auto* p) { p->set_int64_param(-1); }},
      {"timeout", [](auto* p) { p->set_uint64_param(~uint64_t{0}); }},
      {"timeout", [](auto* p) { p->set_double_param(1); }},
      {"sequence_id", [](auto* p) { p->set_int64_param(7); }},
      {"sequence_id", [](auto* p) { p->set_string_param("a"); }},
      {"sequence_start", [](auto* p) { p->set_bool_param(true); }},
      {"triton_other", [](auto* p) { p->set_bool_param(false); }},
      {"score_threshold", [](auto* p) { p->set_string_param("high"); }},
  };
  for (const auto& [name, fill] : refused) {
    ModelInferRequest request = Fp32Request();
    fill(&(*request.mutable_parameters())[name]);
    ExpectRefused(request, "parameters." + name);
  }
  ModelInferRequest negative = Fp32Request();
  (*negative.mutable_parameters())["timeout"].set_int64_param(-1);
  const std::string message = Infer(negative).message;
  EXPECT_NE(message.find("parameters.timeout: got int64_param: -1, expected an "
                         "integer of 0 or more"),
            std::string::npos)
      << message;
  ModelInferRequest wordy = Fp32Request();
  (*wordy.mutable_parameters())["timeout"].set_string_param(
      std::string(1 << 20, '\1'));
  EXPECT_LT(Infer(wordy).message.size(), 1000u);
  ModelInferRequest request = Fp32Request();
  auto& parameters = *request.mutable_parameters();
  parameters["timeout"].set_int64_param(0);  // 0 means no timeout.
  parameters["sequence_id"].set_int64_param(0);
  parameters["sequence_end"].set_bool_param(false);
  parameters["triton_enable_empty_final_response"].set_bool_param(true);
  parameters["binary_data_output"].set_bool_param(true);
  parameters["anything"].set_string_param("else");
  Answer(request);
}

TEST_F(RefusedInferTest, AThresholdOutOfRangeOfADetector) {
  Start(model::VisionTask::kDetection);
  ModelInferRequest request =
      BytesRequest({server::EncodePng(server::Gradient(64, 48))});
  (*request.mutable_parameters())["score_threshold"].set_double_param(2);
  ExpectRefused(request, "parameters.score_threshold");
  ModelInferRequest shapeless = RequestFor("FP32", {});
  shapeless.add_raw_input_contents("");
  ExpectRefused(shapeless, "inputs[0].shape");
}

TEST_F(RefusedInferTest, SharedMemory) {
  Start();
  ModelInferRequest request = RequestFor("FP32", {1, 3, kSide, kSide});
  (*request.mutable_inputs(0)->mutable_parameters())["shared_memory_region"]
      .set_string_param("mine");
  EXPECT_EQ(Infer(request).reason, "NOT_SUPPORTED");
  EXPECT_EQ(Infer(request).code, StatusCode::UNIMPLEMENTED);
  request = Fp32Request();
  auto* output = request.add_outputs();
  output->set_name("logits");
  (*output->mutable_parameters())["shared_memory_region"].set_string_param("r");
  EXPECT_EQ(Infer(request).reason, "NOT_SUPPORTED");
}

TEST_F(RefusedInferTest, AnIdThatIsTooLong) {
  Start();
  ModelInferRequest request = Fp32Request();
  request.set_id(std::string(129, 'x'));
  ExpectRefused(request, "id");
}

TEST_F(RefusedInferTest, TextsAreNotRepeatedWhole) {
  Start();
  const auto expect = [this](const ModelInferRequest& request,
                             const std::string& part) {
    const std::string message = Infer(request).message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const std::string shown(64, 'x');
  ModelInferRequest input = Fp32Request(), output = Fp32Request(),
                    name = Fp32Request(), value = Fp32Request();
  input.mutable_inputs(0)->set_name(shown + "y");
  expect(input, "got \"" + shown + "\", expected \"image\"");
  output.add_outputs()->set_name(shown + "y");
  expect(output, "got \"" + shown + "\", expected one of logits, embedding");
  const std::string own = "triton_" + shown.substr(7);
  (*name.mutable_parameters())[own + "y"].set_bool_param(true);
  expect(name, "parameters." + own + ": got bool_param: true, expected no");
  (*value.mutable_parameters())["timeout"].set_string_param(
      std::string(101, 'x'));
  expect(value, "got string_param: \"" + std::string(100, 'x') + "\", exp");
  ModelInferRequest request = Fp32Request();
  request.mutable_inputs(0)->set_datatype(std::string(60'000, 'x'));
  EXPECT_LT(Infer(request).message.size(), 300);
  request.mutable_inputs(0)->set_datatype(std::string(70'000, 'x'));
  ExpectRefused(request, "inputs");
}

class MalformedInferTest : public RefusedInferTest {
 protected:
  server::Ending Send(const std::string& bytes) {
    grpc::GenericStub stub(server_->channel());
    grpc::ClientContext context;
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::Status status;
    absl::Notification done;
    stub.UnaryCall(&context, "/inference.GRPCInferenceService/ModelInfer",
                   grpc::StubOptions(), &request, &response,
                   [&](grpc::Status ended) {
                     status = std::move(ended);
                     done.Notify();
                   });
    WaitFor(done, "the end of the call");
    return server::EndingOf(status, &context);
  }
};

TEST_F(MalformedInferTest, IsAnsweredWithAReasonAndCounted) {
  Start();
  const std::string valid = Fp32Request().SerializeAsString();
  const std::vector<std::string> messages = {
      std::string("\x2a\x7fxyz", 5),       // The length exceeds the message.
      std::string("\x0a\x02\xc0\x80", 4),  // The name is not UTF-8.
      std::string("\x3a", 1),
      valid.substr(0, valid.size() - 1),
  };
  for (const std::string& message : messages) {
    const server::Ending ending = Send(message);
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(ending.reason, "MALFORMED_MESSAGE") << ending.message;
  }
  EXPECT_EQ(
      server_->Sum("sfmamba_requests_total",
                   {R"(reason="MALFORMED_MESSAGE")", R"(method="ModelInfer")"}),
      messages.size());
  EXPECT_EQ(Send("").field, "model_name");
}

TEST_F(MalformedInferTest, ManyEmptyInputsAreCountedAndNotMade) {
  Start();
  std::string message =
      "\x0a\x04"
      "fake";
  for (int i = 0; i < 4'000'000; ++i) message += {'\x2a', '\0'};
  EXPECT_EQ(Send(message).field, "inputs");
  std::string outputs = Fp32Request().SerializeAsString();
  for (int i = 0; i < 4'000'000; ++i) outputs += {'\x32', '\0'};
  EXPECT_EQ(Send(outputs).field, "outputs");
  ExpectAlive();
}

TEST_F(MalformedInferTest, UnknownFieldsAreReadOver) {
  Start();
  // Fields 90 (a number) and 91 (bytes) of the request are unknown.
  ModelInferRequest request = Fp32Request();
  std::string message = request.SerializeAsString();
  message += std::string(
      "\xd0\x05\x07\xda\x05\x03"
      "abc",
      9);
  EXPECT_EQ(Send(message).code, StatusCode::OK);
}

}  // namespace
}  // namespace sfmamba::kserve
