#include "server/rest/kserve/json.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"

namespace sfmamba::rest {
namespace {

using testing::HasSubstr;

constexpr int64_t kMax = 1 << 20;

// Returns the JSON of a request with one input of this data type. `rest` is
// added to the input.
std::string Input(const std::string& datatype, const std::string& rest) {
  return absl::StrCat(R"({"inputs": [{"name": "image", "datatype": ")",
                      datatype, R"(", "shape": [2])", rest, "}]}");
}

InferJson Read(const std::string& json) {
  absl::StatusOr<InferJson> read = ReadInferJson(json, kMax);
  EXPECT_TRUE(read.ok()) << json << ": " << read.status();
  return read.ok() ? *std::move(read) : InferJson();
}

// Reads `json`, which must be refused. Returns "<reason> <field>: <message>" of
// the error.
std::string Refused(const std::string& json, int64_t max = kMax) {
  const absl::Status status = ReadInferJson(json, max).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
  const server::ErrorDetail detail = server::GetErrorDetail(status);
  return absl::StrCat(detail.reason, " ", detail.field, ": ", status.message());
}

std::vector<float> Floats(const std::string& raw) {
  std::vector<float> values(raw.size() / sizeof(float));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(float));
  return values;
}

TEST(KserveJsonTest, ReadsAWholeRequest) {
  const InferJson read = Read(R"({
    "id": "seven", "unknown": {"inputs": [1, {"a": [[]]}]},
    "parameters": {"priority": 1, "timeout": 18446744073709551615,
                   "score_threshold": 0.5, "flag": true, "text": "a\u00e9",
                   "binary_data_output": true},
    "inputs": [{"name": "image", "datatype": "UINT8", "shape": [1, -3, 2],
                "parameters": {"own": -7}, "data": [0, 255]}],
    "outputs": [{"name": "logits", "parameters":
                 {"binary_data": false, "classification": 3}},
                {"name": "embedding"}]})");
  const inference::ModelInferRequest& message = read.message;
  EXPECT_EQ(message.id(), "seven");
  ASSERT_EQ(message.parameters_size(), 5);
  EXPECT_EQ(message.parameters().at("priority").int64_param(), 1);
  EXPECT_EQ(message.parameters().at("timeout").uint64_param(), ~uint64_t{0});
  EXPECT_EQ(message.parameters().at("score_threshold").double_param(), 0.5);
  EXPECT_TRUE(message.parameters().at("flag").bool_param());
  EXPECT_EQ(message.parameters().at("text").string_param(), "a\xc3\xa9");
  EXPECT_TRUE(read.outputs.default_binary);
  ASSERT_EQ(message.inputs_size(), 1);
  EXPECT_EQ(message.inputs(0).name(), "image");
  EXPECT_EQ(message.inputs(0).datatype(), "UINT8");
  EXPECT_THAT(message.inputs(0).shape(), testing::ElementsAre(1, -3, 2));
  EXPECT_EQ(message.inputs(0).parameters().at("own").int64_param(), -7);
  ASSERT_EQ(read.inputs.size(), 1);
  EXPECT_EQ(read.inputs[0].raw, std::string("\0\xff", 2));
  EXPECT_EQ(read.inputs[0].binary_bytes, std::nullopt);
  ASSERT_EQ(message.outputs_size(), 2);
  EXPECT_EQ(message.outputs(0).name(), "logits");
  EXPECT_EQ(message.outputs(0).parameters_size(), 1);
  EXPECT_EQ(message.outputs(0).parameters().at("classification").int64_param(),
            3);
  EXPECT_THAT(read.outputs.binary,
              testing::ElementsAre(std::optional<bool>(false), std::nullopt));
}

TEST(KserveJsonTest, NumbersAreFlattenedInTheirOrder) {
  const InferJson read =
      Read(Input("FP32", R"(, "data": [[1, [-2.5]], [], [[3e2, 0.1]]])"));
  EXPECT_EQ(Floats(*read.inputs[0].raw),
            std::vector<float>({1, -2.5f, 300, 0.1f}));
}

TEST(KserveJsonTest, TheLargestNumbersAreRead) {
  const InferJson read = Read(
      R"({"parameters": {"timeout": 9223372036854775807},
          "inputs": [{"datatype": "FP32", "shape": [9223372036854775807],
                      "data": [3.4028234663852886e38]}]})");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(read.message.parameters().at("timeout").int64_param(), kMost);
  EXPECT_EQ(read.message.inputs(0).shape(0), kMost);
  EXPECT_EQ(Floats(*read.inputs[0].raw),
            std::vector<float>({std::numeric_limits<float>::max()}));
}

TEST(KserveJsonTest, TheTypeMayFollowItsData) {
  const InferJson read = Read(
      R"({"inputs": [{"data": [7, 8], "shape": [2], "datatype": "UINT8"}]})");
  EXPECT_EQ(read.inputs[0].raw, "\7\10");
}

TEST(KserveJsonTest, StringsAndBase64AreBytes) {
  const InferJson read =
      Read(Input("BYTES", R"(, "data": ["h\u00e9", "", {"b64": "AP/+"}])"));
  EXPECT_EQ(read.inputs[0].raw,
            std::string("\3\0\0\0h\xc3\xa9\0\0\0\0\3\0\0\0\0\xff\xfe", 18));
}

TEST(KserveJsonTest, BinaryDataIsOnlyCounted) {
  const InferJson read =
      Read(Input("FP16", R"(, "parameters": {"binary_data_size": 4})"));
  EXPECT_EQ(read.inputs[0].binary_bytes, 4);
  EXPECT_EQ(read.inputs[0].raw, std::nullopt);
  EXPECT_EQ(read.message.inputs(0).parameters_size(), 0);
}

TEST(KserveJsonTest, WhatIsNoJsonIsRefusedAtItsByte) {
  for (const char* json : {"", "{", "{}}", "{\"id\": \"\xff\"}", "{'id': 1}",
                           "{\"id\": nul}", "\"", "{\"a\": [1"}) {
    EXPECT_THAT(Refused(json), HasSubstr("MALFORMED_MESSAGE")) << json;
  }
  EXPECT_THAT(Refused("{\"id\" 1}"), HasSubstr("from byte 7 on"));
  EXPECT_THAT(Refused(Input("FP32", ", \"data\": [1e999]")),
              HasSubstr("beyond the range of a double"));
  EXPECT_THAT(Refused("3"), HasSubstr("got an integer, expected an object"));
  EXPECT_THAT(Refused("[]"), HasSubstr("got an array, expected an object"));
}

TEST(KserveJsonTest, EachWrongValueIsNamed) {
  const std::pair<std::string, std::string> kCases[] = {
      {R"({"id": 7})", "id: got an integer, expected a string"},
      {R"({"id": ["a"]})", "id: got an array, expected a string"},
      {R"({"inputs": {}})", "inputs: got an object, expected an array"},
      {R"({"inputs": [7]})", "inputs[0]: got an integer, expected an object"},
      {R"({"inputs": [{}, {"name": null}]})",
       "inputs[1].name: got null, expected a string"},
      {R"({"inputs": [{"shape": [1, 2.5]}]})",
       "inputs[0].shape[1]: got a number, expected an integer"},
      {R"({"inputs": [{"shape": [[1]]}]})",
       "inputs[0].shape[0]: got an array, expected an integer"},
      {R"({"inputs": [{"shape": [9223372036854775808]}]})",
       "inputs[0].shape[0]: got an integer, expected an integer of 64 bits"},
      {R"({"inputs": [{"shape": "[1]"}]})",
       "inputs[0].shape: got a string, expected an array"},
      {R"({"outputs": [{"name": false}]})",
       "outputs[0].name: got a boolean, expected a string"},
      {R"({"parameters": [1]})",
       "parameters: got an array, expected an object"},
      {R"({"parameters": {"a": null}})", "parameters.a: got null, expected"},
      {R"({"parameters": {"a": [1]}})", "parameters.a: got an array, expected"},
      {R"({"parameters": {"binary_data_output": 1}})",
       "parameters.binary_data_output: got an integer, expected a boolean"},
      {R"({"inputs": [{"parameters": {"binary_data_size": -1}}]})",
       "inputs[0].parameters.binary_data_size: got -1, expected"},
      {R"({"inputs": [{"parameters": {"binary_data_size": "4"}}]})",
       "inputs[0].parameters.binary_data_size: got a string, expected"},
      {R"({"outputs": [{"parameters": {"binary_data": "yes"}}]})",
       "outputs[0].parameters.binary_data: got a string, expected a boolean"},
  };
  for (const auto& [json, error] : kCases) {
    EXPECT_THAT(Refused(json), HasSubstr("INVALID_FIELD " + error)) << json;
  }
}

TEST(KserveJsonTest, EachWrongElementIsNamed) {
  const std::tuple<std::string, std::string, std::string> kCases[] = {
      {"FP32", R"("1")", "got strings, expected numbers"},
      {"FP32", R"(1, "1")", "got numbers and strings, the first after 1"},
      {"FP32", R"(1, {"b64": "AA=="})", "got numbers and strings"},
      {"FP32", "true", "got a boolean, expected numbers or strings"},
      {"FP32", "1, null", "got null, expected numbers or strings"},
      {"FP32", "0, 3.5e38", "got 3.5e+38 as element 1"},
      {"UINT8", "0, 256", "got 256 as element 1, expected an integer of 0"},
      {"UINT8", "-1, 300", "got -1 as element 0"},
      {"UINT8", "0.5", "got 0.5 as element 0"},
      {"UINT8", R"("a")", "got strings, expected numbers"},
      {"FP16", "1", "got numbers of FP16, which exist as binary data only"},
      {"BF16", "1", "got numbers of BF16"},
      {"BYTES", "1", "got numbers, expected the strings of BYTES"},
      {"BYTES", R"({"b64": "*"})", "got no base64 as element 0"},
      {"BYTES", R"({"b64": 7})", "got an integer, expected a string"},
      {"BYTES", R"({"b64": ["AA=="]})", "got an array, expected a string"},
      {"BYTES", R"({"b64": {}})", "got an object, expected a string"},
      {"BYTES", R"({"x": "AA=="})", "got an object, expected {\"b64\""},
      {"BYTES", R"({"b64": "AA==", "b64": "AA=="})", "expected {\"b64\""},
      {"BYTES", "{}", "got an object, expected {\"b64\""},
  };
  for (const auto& [datatype, data, error] : kCases) {
    const std::string refused =
        Refused(Input(datatype, ", \"data\": [" + data + "]"));
    EXPECT_THAT(refused, HasSubstr("inputs[0].data")) << data;
    EXPECT_THAT(refused, HasSubstr(error)) << data;
  }
}

TEST(KserveJsonTest, NothingIsSaidTwice) {
  EXPECT_THAT(Refused(R"({"id": "a", "id": "b"})"),
              HasSubstr("id: got it twice"));
  EXPECT_THAT(Refused(R"({"inputs": [{"shape": [1], "shape": [2]}]})"),
              HasSubstr("inputs[0].shape: got it twice"));
  EXPECT_THAT(Refused(R"({"inputs": [{"data": [1], "data": []}]})"),
              HasSubstr("inputs[0].data: got it twice"));
  EXPECT_THAT(Refused(R"({"parameters": {"a": 1, "a": 1}})"),
              HasSubstr("parameters.a: got it twice"));
  EXPECT_THAT(Refused(Input("UINT8", R"(, "data": [1], "parameters":
                                         {"binary_data_size": 1})")),
              HasSubstr("inputs[0].data: got it beside"));
}

TEST(KserveJsonTest, WhatTakesMemoryIsBounded) {
  std::string many = "{}";
  for (int i = 0; i < 16; ++i) many += ",{}";
  EXPECT_THAT(Refused(absl::StrCat("{\"inputs\": [", many, "]}")),
              HasSubstr("inputs: got 17, expected at most 16"));
  EXPECT_THAT(Refused(absl::StrCat("{\"outputs\": [", many, "]}")),
              HasSubstr("outputs: got 17, expected at most 16"));
  std::string parameters = "\"0\": 0", dimensions = "1";
  for (int i = 1; i <= 64; ++i) {
    absl::StrAppend(&parameters, ", \"", i, "\": 0");
    dimensions += ",1";
  }
  EXPECT_THAT(Refused(absl::StrCat("{\"parameters\": {", parameters, "}}")),
              HasSubstr("parameters: got 65, expected at most 64"));
  EXPECT_THAT(
      Refused(absl::StrCat("{\"inputs\": [{\"shape\": [", dimensions, "]}]}")),
      HasSubstr("inputs[0].shape: got 65, expected at most 16"));
  EXPECT_THAT(Refused(Input("FP32", ", \"data\": [1, 2, 3]"), 8),
              HasSubstr("inputs[0].data: got more than 8 bytes of elements"));
  EXPECT_THAT(Refused(Input("BYTES", ", \"data\": [\"abcdefgh\"]"), 11),
              HasSubstr("inputs[0].data: got more than 11 bytes of elements"));
  many.clear();
  for (int i = 0; i < 17; ++i) many += "{\"data\": []},";
  EXPECT_THAT(Refused(absl::StrCat("{\"inputs\": [", many, "{}]}")),
              HasSubstr("got data of more than 16 inputs, expected one"));
  // The limit applies to the sum over all inputs.
  EXPECT_THAT(Refused(R"({"inputs": [{"datatype": "BYTES", "data": ["abcd"]},
                                     {"datatype": "BYTES", "data": [""]}]})",
                      11),
              HasSubstr("inputs[1].data: got more than 3 bytes"));
}

TEST(KserveJsonTest, AsMuchAsTheBoundsAllowIsRead) {
  std::vector<std::string> inputs, outputs, parameters;
  const std::string shape = absl::StrJoin(std::vector<int>(16, 1), ",");
  for (int i = 0; i < 16; ++i) {
    inputs.push_back(absl::StrCat("{\"name\": \"i", i,
                                  "\", \"datatype\": \"UINT8\", \"shape\": [",
                                  shape, "], \"data\": [1]}"));
    outputs.push_back(absl::StrCat("{\"name\": \"o", i, "\"}"));
  }
  for (int i = 0; i < 64; ++i) {
    parameters.push_back(absl::StrCat("\"p", i, "\": ", i));
  }
  EXPECT_TRUE(ReadInferJson(Input("FP32", ", \"data\": [1, 2, 3]"), 12).ok());
  EXPECT_TRUE(
      ReadInferJson(Input("BYTES", ", \"data\": [\"abcdefgh\"]"), 12).ok());
  const InferJson read = Read(absl::StrCat(
      "{\"inputs\": [", absl::StrJoin(inputs, ","), "], \"outputs\": [",
      absl::StrJoin(outputs, ","), "], \"parameters\": {",
      absl::StrJoin(parameters, ","), "}}"));
  EXPECT_EQ(read.message.inputs_size(), 16);
  EXPECT_EQ(read.message.inputs(15).shape_size(), 16);
  EXPECT_EQ(read.message.outputs_size(), 16);
  EXPECT_EQ(read.message.parameters_size(), 64);
}

TEST(KserveJsonTest, LevelsMayBeThirtyTwo) {
  const auto nested = [](int lists) {
    return std::string(lists, '[') + "1" + std::string(lists, ']');
  };
  const auto unknown = [&](int lists) {
    return absl::StrCat("{\"a\": ", nested(lists), "}");
  };
  const auto data = [&](int lists) {
    return Input("UINT8", ", \"data\": " + nested(lists));
  };
  Read(unknown(31));
  EXPECT_THAT(Refused(unknown(32)), HasSubstr("more than 32 levels deep"));
  Read(data(29));
  EXPECT_THAT(Refused(data(30)), HasSubstr("more than 32 levels deep"));
}

TEST(KserveJsonTest, OnlyElementsMayBeMany) {
  // The limit is 4096 values. It counts the request object and the list too, so
  // the list may have 4094 elements.
  std::string zeros = "0";
  for (int i = 1; i < 4094; ++i) zeros += ",0";
  Read(absl::StrCat("{\"a\": [", zeros, "]}"));
  EXPECT_THAT(Refused(absl::StrCat("{\"a\": [", zeros, ",0]}")),
              HasSubstr("got more than 4096 values"));
  std::string nulls = "null";
  for (int i = 0; i < 5000; ++i) nulls += ",null";
  EXPECT_THAT(Refused(absl::StrCat("{\"a\": [", nulls, "]}")),
              HasSubstr("got more than 4096 values"));
  std::string keys = "\"a\": 1";
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&keys, ", \"", i, "\": 1");
  EXPECT_THAT(Refused(absl::StrCat("{", keys, "}")),
              HasSubstr("got more than 4096 values"));
  std::string ones = "1";
  for (int i = 0; i < 5000; ++i) ones += ",1";
  EXPECT_EQ(
      Read(Input("UINT8", ", \"data\": [" + ones + "]")).inputs[0].raw->size(),
      5001);
}

TEST(KserveJsonTest, WordsHaveALimit) {
  const std::string most((16 << 20) - 1, 'x');
  EXPECT_EQ(Read("{\"id\": \"" + most + "\"}").message.id(), most);
  EXPECT_THAT(Refused("{\"id\": \"" + most + "x\"}"),
              HasSubstr("a string of more than 16777216 bytes from byte 7 "));
  // The first string has no end. The second contains escaped quotes, which do
  // not end a string.
  EXPECT_THAT(Refused("\"" + most + "x"), HasSubstr("a string of more"));
  std::string quotes;
  while (quotes.size() < most.size()) quotes += "\\\"\\\\";
  EXPECT_THAT(Refused("\"" + quotes + "\""), HasSubstr("a string of more"));
  const std::string word(1024, '9');
  EXPECT_THAT(Refused("[1, " + word + "9]"),
              HasSubstr("a word of more than 1024 bytes from byte 4 "));
  EXPECT_THAT(Refused("{\"\\\\\":" + word + "}"),
              HasSubstr("beyond the range of a double"));
}

TEST(KserveJsonTest, DepthTakesNoStack) {
  constexpr int kBytes = 8 << 20;
  for (const char* start : {"", "{\"a\": ", "{\"inputs\": [{\"data\": "}) {
    EXPECT_THAT(Refused(start + std::string(kBytes, '[')),
                HasSubstr(*start == '\0' ? "expected an object"
                                         : "more than 32 levels deep"));
  }
  std::string objects;
  for (int i = 0; i < kBytes / 5; ++i) objects += "{\"a\":";
  EXPECT_THAT(Refused(objects), HasSubstr("more than 32 levels deep"));
}

TEST(KserveJsonTest, ALongKeyIsNotRepeated) {
  const std::string key(1 << 20, 'k');
  EXPECT_LT(
      Refused(absl::StrCat("{\"parameters\": {\"", key, "\": null}}")).size(),
      400);
  const std::string shown(64, 'k');
  EXPECT_THAT(
      Refused(absl::StrCat("{\"parameters\": {\"", shown, "y\": null}}")),
      HasSubstr(absl::StrCat("parameters.", shown, ": got null")));
  EXPECT_THAT(
      Refused(absl::StrCat("{\"", shown, "y\": 1, \"", shown, "y\": 1}")),
      HasSubstr(absl::StrCat(shown, ": got it twice")));
}

}  // namespace
}  // namespace sfmamba::rest
