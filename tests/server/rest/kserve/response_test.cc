#include "server/rest/kserve/response.h"

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "inference/packed_response.pb.h"
#include "nlohmann/json.hpp"

namespace sfmamba::rest {
namespace {

using inference::packed::ModelInferResponse;

template <typename T>
void AddOutput(const std::string& name, const std::string& datatype,
               const std::vector<T>& values, ModelInferResponse* answer) {
  auto* output = answer->add_outputs();
  output->set_name(name);
  output->set_datatype(datatype);
  output->add_shape(1);
  output->add_shape(values.size());
  answer->add_raw_output_contents(std::string(
      reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}

std::string HeaderOf(const http::HttpResponse& response,
                     const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

ModelInferResponse Answer() {
  ModelInferResponse answer;
  answer.set_model_name("a");
  answer.set_model_version("3");
  AddOutput<float>("scores", "FP32", {0.1f, -1e-30f, 3}, &answer);
  AddOutput<int32_t>("classes", "INT32", {-7, 1 << 30}, &answer);
  AddOutput<uint8_t>("map", "UINT8", {0, 255}, &answer);
  AddOutput<uint8_t>("best", "BYTES", {2, 0, 0, 0, 'h', '"', 0, 0, 0, 0},
                     &answer);
  return answer;
}

TEST(KserveResponseTest, JsonHasAllOutputs) {
  ModelInferResponse answer = Answer();
  const http::HttpResponse response = KserveResponse({}, "a", &answer);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(HeaderOf(response, "Content-Type"), "application/json");
  EXPECT_EQ(HeaderOf(response, "Inference-Header-Content-Length"), "");
  ASSERT_EQ(response.body.size(), 1);
  const auto json = nlohmann::json::parse(response.body[0]);
  EXPECT_EQ(json["model_name"], "a");
  EXPECT_EQ(json["model_version"], "3");
  EXPECT_FALSE(json.contains("id"));
  ASSERT_EQ(json["outputs"].size(), 4);
  EXPECT_EQ(json["outputs"][0]["name"], "scores");
  EXPECT_EQ(json["outputs"][0]["datatype"], "FP32");
  EXPECT_EQ(json["outputs"][0]["shape"], nlohmann::json({1, 3}));
  // Parsing the JSON gives the same floats, bit for bit.
  EXPECT_EQ(json["outputs"][0]["data"].get<std::vector<float>>(),
            std::vector<float>({0.1f, -1e-30f, 3}));
  EXPECT_EQ(json["outputs"][1]["data"], nlohmann::json({-7, 1 << 30}));
  EXPECT_EQ(json["outputs"][2]["data"], nlohmann::json({0, 255}));
  EXPECT_EQ(json["outputs"][3]["data"], nlohmann::json({"h\"", ""}));
}

TEST(KserveResponseTest, BinaryDataFollowsTheJson) {
  ModelInferResponse answer = Answer();
  answer.set_id("se\"ven");
  const std::string scores = answer.raw_output_contents(0);
  OutputForms forms;
  forms.binary = {true, std::nullopt, true, false};
  const http::HttpResponse response = KserveResponse(forms, "a", &answer);
  EXPECT_EQ(HeaderOf(response, "Content-Type"), "application/octet-stream");
  ASSERT_EQ(response.body.size(), 3);
  EXPECT_EQ(HeaderOf(response, "Inference-Header-Content-Length"),
            std::to_string(response.body[0].size()));
  EXPECT_EQ(response.body[1], scores);
  EXPECT_EQ(response.body[2], std::string("\0\xff", 2));
  const auto json = nlohmann::json::parse(response.body[0]);
  EXPECT_EQ(json["id"], "se\"ven");
  EXPECT_EQ(json["outputs"][0]["parameters"]["binary_data_size"], 12);
  EXPECT_FALSE(json["outputs"][0].contains("data"));
  EXPECT_FALSE(json["outputs"][1].contains("parameters"));
  EXPECT_EQ(json["outputs"][1]["data"][0], -7);
  EXPECT_EQ(json["outputs"][2]["parameters"]["binary_data_size"], 2);
}

}  // namespace
}  // namespace sfmamba::rest
