#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"
#include "server/api/kserve/infer_request.h"
#include "server/call/wire/wire_cursor.h"
#include "server/errors/error.h"

namespace sfmamba::kserve {
namespace {

inference::ModelInferRequest Request() {
  inference::ModelInferRequest request;
  request.set_model_name("fake");
  request.set_model_version("3");
  request.set_id("seven");
  (*request.mutable_parameters())["priority"].set_uint64_param(1);
  auto* input = request.add_inputs();
  input->set_name("image");
  input->set_datatype("FP32");
  input->add_shape(1);
  input->add_shape(300);
  (*input->mutable_parameters())["p"].set_string_param("v");
  request.add_outputs()->set_name("logits");
  return request;
}

absl::string_view At(const std::string& message,
                     const call::WireExtent& extent) {
  return absl::string_view(message).substr(extent.position, extent.length);
}

TEST(InferWireTest, LeavesElementsWhereTheyAre) {
  inference::ModelInferRequest request = Request();
  request.add_raw_input_contents("the elements");
  const std::string message = request.SerializeAsString();
  InferWire wire;
  ASSERT_TRUE(WalkInferRequest({message}, &wire).ok());
  EXPECT_EQ(wire.inputs, 1);
  EXPECT_EQ(wire.outputs, 1);
  EXPECT_EQ(wire.raw_inputs, 1);
  EXPECT_EQ(wire.contents_count, 0);
  EXPECT_EQ(At(message, wire.raw), "the elements");
  inference::ModelInferRequest rest;
  ASSERT_TRUE(rest.ParseFromString(wire.rest));
  EXPECT_EQ(rest.DebugString(), Request().DebugString());
}

TEST(InferWireTest, FindsTypedContents) {
  inference::ModelInferRequest request = Request();
  request.mutable_inputs(0)->mutable_contents()->add_bytes_contents("abc");
  const std::string message = request.SerializeAsString();
  InferWire wire;
  ASSERT_TRUE(WalkInferRequest({message}, &wire).ok());
  EXPECT_EQ(wire.contents_count, 1);
  EXPECT_EQ(At(message, wire.contents),
            request.inputs(0).contents().SerializeAsString());
  inference::ModelInferRequest rest;
  ASSERT_TRUE(rest.ParseFromString(wire.rest));
  EXPECT_EQ(rest.DebugString(), Request().DebugString());
}

TEST(InferWireTest, ReadsAMessageInParts) {
  inference::ModelInferRequest request = Request();
  request.add_raw_input_contents(std::string(100, 'x'));
  const std::string message = request.SerializeAsString();
  for (size_t cut = 0; cut <= message.size(); ++cut) {
    const absl::string_view whole = message;
    InferWire wire;
    ASSERT_TRUE(
        WalkInferRequest({whole.substr(0, cut), whole.substr(cut)}, &wire)
            .ok());
    EXPECT_EQ(At(message, wire.raw), std::string(100, 'x'));
  }
}

TEST(InferWireTest, CountsWhatIsTooMuchAndKeepsTheFirst) {
  inference::ModelInferRequest request = Request();
  for (int i = 0; i < 20; ++i) {
    request.add_inputs()->set_name("other");
    request.add_outputs()->set_name("other");
    request.add_raw_input_contents("other");
  }
  InferWire wire;
  ASSERT_TRUE(WalkInferRequest({request.SerializeAsString()}, &wire).ok());
  EXPECT_EQ(wire.inputs, 21);
  EXPECT_EQ(wire.outputs, 21);
  EXPECT_EQ(wire.raw_inputs, 20);
  inference::ModelInferRequest rest;
  ASSERT_TRUE(rest.ParseFromString(wire.rest));
  EXPECT_EQ(rest.inputs_size(), 1);
  EXPECT_EQ(rest.outputs_size(), kMaxOutputs);
}

// At most kMaxCounted fields are counted. The bytes after them are not read, so
// a long message takes no time.
TEST(InferWireTest, CountsUpToALimit) {
  const std::pair<char, int InferWire::*> kFields[] = {
      {'\x2a', &InferWire::inputs},
      {'\x32', &InferWire::outputs},
      {'\x3a', &InferWire::raw_inputs}};
  for (const auto& [tag, count] : kFields) {
    std::string message;
    for (int i = 0; i < kMaxCounted; ++i) message += {tag, '\0'};
    InferWire wire;
    ASSERT_TRUE(WalkInferRequest({message + "\xff\xff"}, &wire).ok());
    EXPECT_EQ(wire.*count, kMaxCounted);
  }
}

TEST(InferWireTest, RefusesEveryTruncation) {
  inference::ModelInferRequest request = Request();
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  request.add_raw_input_contents("elements");
  const std::string message = request.SerializeAsString();
  for (size_t size = 1; size < message.size(); ++size) {
    const absl::string_view part = absl::string_view(message).substr(0, size);
    InferWire wire;
    const absl::Status status = WalkInferRequest({part}, &wire);
    inference::ModelInferRequest parsed;
    EXPECT_EQ(status.ok(), parsed.ParseFromArray(part.data(), part.size()))
        << size;
    if (status.ok()) continue;
    EXPECT_EQ(server::GetErrorDetail(status).reason, "MALFORMED_MESSAGE");
  }
}

// Protobuf groups are nested in a known or an unknown field. An input also
// counts as a level of nesting.
TEST(InferWireTest, LevelsHaveALimit) {
  const auto walks = [](const std::string& tags, const std::string& start,
                        const std::string& end, int groups) {
    std::string bytes;
    for (int i = 0; i < groups; ++i) bytes = start + bytes + end;
    for (const char tag : tags) {
      std::string length;
      call::AppendVarint(bytes.size(), &length);
      bytes = tag + length + bytes;
    }
    InferWire wire;
    return WalkInferRequest({bytes}, &wire).ok();
  };
  const std::pair<std::string, std::string> kGroups[] = {{"\x0b", "\x0c"},
                                                         {"\x4b", "\x4c"}};
  for (const auto& [start, end] : kGroups) {
    EXPECT_TRUE(walks("", start, end, call::kMaxWireDepth));
    EXPECT_FALSE(walks("", start, end, call::kMaxWireDepth + 1));
    EXPECT_TRUE(walks("\x2a", start, end, call::kMaxWireDepth - 1));
    EXPECT_FALSE(walks("\x2a", start, end, call::kMaxWireDepth));
  }
}

TEST(InferWireTest, NamesTheFieldThatIsTooLarge) {
  inference::ModelInferRequest request = Request();
  request.set_id(std::string(kMaxInferRestBytes, 'x'));
  InferWire wire;
  absl::Status status = WalkInferRequest({request.SerializeAsString()}, &wire);
  EXPECT_EQ(server::GetErrorDetail(status).field, "id");
  request = Request();
  for (int i = 0; i < kMaxInferRestBytes; ++i) {
    request.mutable_inputs(0)->add_shape(1);
  }
  wire = InferWire();
  status = WalkInferRequest({request.SerializeAsString()}, &wire);
  EXPECT_EQ(server::GetErrorDetail(status).field, "inputs");
}

}  // namespace
}  // namespace sfmamba::kserve
