#include "server/rest/response_body.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_join.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rest {
namespace {

v1::ClassifyResult ResultOf(int categories) {
  v1::ClassifyResult result;
  for (int i = 0; i < categories; ++i) result.add_categories()->set_class_id(i);
  return result;
}

class ResponseBodyTest : public testing::TestWithParam<Encoding> {
 protected:
  // Parses a response of the encoding under test.
  static v1::ClassifyResponse Parsed(const std::string& text) {
    v1::ClassifyResponse response;
    if (GetParam() == Encoding::kProtobuf) {
      EXPECT_TRUE(response.ParseFromString(text));
    } else {
      EXPECT_TRUE(
          google::protobuf::util::JsonStringToMessage(text, &response).ok())
          << text;
    }
    return response;
  }
};

INSTANTIATE_TEST_SUITE_P(Encodings, ResponseBodyTest,
                         testing::Values(Encoding::kJson, Encoding::kProtobuf));

TEST_P(ResponseBodyTest, HasAllResultsAndIsAsLongAsItSays) {
  for (const int images : {0, 1, 2, 100}) {
    for (const bool named : {true, false}) {
      v1::ClassifyResponse rest, expected;
      if (named) rest.set_model("m");
      expected = rest;
      ResponseBody body(GetParam());
      body.Start(images);
      int64_t results = 0;
      for (int i = 0; i < images; ++i) {
        *expected.add_results() = ResultOf(i % 3);
        results += body.Set(i, ResultOf(i % 3));
      }
      const int64_t bytes = body.Bytes(rest);
      const std::string text = absl::StrJoin(body.Take(rest).body, "");
      EXPECT_EQ(Parsed(text).SerializeAsString(), expected.SerializeAsString());
      EXPECT_GE(bytes, text.size());
      EXPECT_LE(bytes, text.size() + 2);
      EXPECT_LE(results, text.size());
    }
  }
}

TEST_P(ResponseBodyTest, WhatIsNotSetIsEmpty) {
  ResponseBody body(GetParam());
  body.Start(3);
  body.Set(1, ResultOf(2));
  const v1::ClassifyResponse response =
      Parsed(absl::StrJoin(body.Take(v1::ClassifyResponse()).body, ""));
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.results(0).categories_size(), 0);
  EXPECT_EQ(response.results(1).categories_size(), 2);
  EXPECT_EQ(response.results(2).categories_size(), 0);
}

}  // namespace
}  // namespace sfmamba::rest
