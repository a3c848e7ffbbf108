#include "server/rest/json_body.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rest {
namespace {

// Returns `size` bytes with all values, in an order in which a mix-up of bytes
// would show.
std::string Picture(size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes.push_back(i * 7 + i / 256);
  return bytes;
}

v1::DetectRequest Read(const std::string& json) {
  v1::DetectRequest request;
  const absl::Status status = ReadJson(json, &request);
  EXPECT_TRUE(status.ok()) << status;
  return request;
}

// Reads `json`, which must be malformed, and returns the error's message.
std::string ErrorOf(const std::string& json) {
  v1::DetectRequest request;
  const absl::Status status = ReadJson(json, &request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(server::GetErrorDetail(status).reason, "MALFORMED_MESSAGE");
  return std::string(status.message());
}

std::string WithPicture(const std::string& base64) {
  return absl::StrCat(R"({"images":[{"encoded":")", base64, R"("}]})");
}

TEST(JsonBodyTest, ReadsAMessageByProtobufsMapping) {
  const v1::DetectRequest request = Read(R"( {
    "model": "a", "request_id": "b\u00e9",
    "images": [{"encoded": "AQID", "crop": {"xMax": 0.5}}],
    "params": {"scoreThreshold": 0.25, "mask_encoding": "COCO_RLE"},
    "options": {"maxQueueWait": "1.5s", "priority": 1}
  } )");
  EXPECT_EQ(request.model(), "a");
  EXPECT_EQ(request.request_id(), "b\xc3\xa9");
  EXPECT_EQ(request.images(0).encoded(), "\x01\x02\x03");
  EXPECT_EQ(request.images(0).crop().x_max(), 0.5f);
  EXPECT_EQ(request.params().score_threshold(), 0.25f);
  EXPECT_EQ(request.params().mask_encoding(), v1::DetectParams::COCO_RLE);
  EXPECT_EQ(request.options().max_queue_wait().nanos(), 500'000'000);
  EXPECT_EQ(request.options().priority(), v1::RequestOptions::HIGH);
}

// Some editors and shells write a byte order mark before the text.
TEST(JsonBodyTest, AByteOrderMarkIsSkipped) {
  EXPECT_EQ(Read("\xEF\xBB\xBF{\"model\":\"a\"}").model(), "a");
  ErrorOf("{\xEF\xBB\xBF\"model\":\"a\"}");
}

TEST(JsonBodyTest, LongPicturesAreDecoded) {
  // The base64 of 768 bytes has 1024 characters. Shorter and longer strings are
  // read in different ways.
  for (size_t size : {760, 766, 767, 768, 769, 770, 771, 772, 3071, 3072, 3073,
                      3074, 3075, 6144, 6145, 100'000}) {
    const std::string picture = Picture(size);
    for (const bool padded : {true, false}) {
      std::string base64 = absl::Base64Escape(picture);
      if (!padded) base64 = std::string(absl::StripSuffix(base64, "="));
      if (!padded) base64 = std::string(absl::StripSuffix(base64, "="));
      EXPECT_EQ(Read(WithPicture(base64)).images(0).encoded(), picture)
          << size << padded;
    }
    EXPECT_EQ(Read(WithPicture(absl::WebSafeBase64Escape(picture)))
                  .images(0)
                  .encoded(),
              picture)
        << size;
  }
}

TEST(JsonBodyTest, Base64MayBeEscapedAndBrokenIntoLines) {
  const std::string picture = Picture(5000);
  const std::string base64 = absl::Base64Escape(picture);
  for (const auto& [from, to] :
       std::vector<std::pair<const char*, const char*>>{{"/", "\\/"},
                                                        {"/", "\\u002f"},
                                                        {"+", "\\u002B"},
                                                        {"=", "\\u003d"},
                                                        {"A", "A\\r\\n"}}) {
    const std::string escaped = absl::StrReplaceAll(base64, {{from, to}});
    EXPECT_EQ(Read(WithPicture(escaped)).images(0).encoded(), picture) << to;
  }
}

TEST(JsonBodyTest, EachPictureGoesWhereItBelongs) {
  const std::string a = Picture(2000), b = Picture(3000), c = Picture(10);
  const v1::DetectRequest request = Read(absl::StrCat(
      R"({"images":[{"tensor":{"data":")", absl::Base64Escape(a),
      R"(","dataType":"FP16","shape":["3","1"]},"orientation":"IGNORE"},)",
      R"({"crop":{"xMin":0.5},"pixels":{"width":7,"data":")",
      absl::Base64Escape(b), R"("}},{"encoded":")", absl::Base64Escape(c),
      R"("},{"encoded":")", absl::Base64Escape(a), R"("},{}]})"));
  ASSERT_EQ(request.images_size(), 5);
  EXPECT_EQ(request.images(0).tensor().data(), a);
  EXPECT_EQ(request.images(0).tensor().data_type(), v1::Tensor::FP16);
  EXPECT_EQ(request.images(0).tensor().shape(1), 1);
  EXPECT_EQ(request.images(0).orientation(), v1::Image::IGNORE);
  EXPECT_EQ(request.images(1).pixels().data(), b);
  EXPECT_EQ(request.images(1).pixels().width(), 7);
  EXPECT_EQ(request.images(1).crop().x_min(), 0.5f);
  EXPECT_EQ(request.images(2).encoded(), c);
  EXPECT_EQ(request.images(3).encoded(), a);
  EXPECT_EQ(request.images(4).source_case(), v1::Image::SOURCE_NOT_SET);
}

TEST(JsonBodyTest, WhatIsNoBase64IsRefused) {
  const std::string base64 = absl::Base64Escape(Picture(3999));
  for (const char* bad :
       {"!", "\\n=\\nA", "=A", "\\u00e9", "\\u0", "\\\\", "\\\"", "\xff",
        "\\u-001", "\\u0x2f", ".", "\\b\\b\\b\\b", "\\A\\A\\A\\A"}) {
    EXPECT_TRUE(absl::StrContains(ErrorOf(WithPicture(base64 + bad + base64)),
                                  "is not base64"))
        << bad;
  }
  // The number of base64 characters does not fit whole bytes.
  EXPECT_TRUE(absl::StrContains(ErrorOf(WithPicture(std::string(4097, 'A'))),
                                "is not base64"));
}

TEST(JsonBodyTest, ALongNameIsNoPicture) {
  ErrorOf(absl::StrCat("{\"", std::string(5000, 'A'), "\":1}"));
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(absl::StrCat("{\"model\":\"", std::string(5000, ' '), "x!\"}")),
      "expected at most 1024 bytes"));
  for (const char* field : {"model", "requestId"}) {
    EXPECT_TRUE(absl::StrContains(
        ErrorOf(absl::StrCat("{\"", field, "\":\"", std::string(5000, 'A'),
                             "\",\"images\":[{\"encoded\":\"",
                             std::string(5000, 'A'), "\"}]}")),
        "expected at most 1024 bytes"))
        << field;
  }
}

TEST(JsonBodyTest, WhatIsNoJsonOfAMessageIsRefused) {
  const std::string deep(200, '[');
  const std::string deep_objects = [] {
    std::string json;
    for (int i = 0; i < 200; ++i) json += "{\"params\":";
    return json;
  }();
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("[]"), std::string("1"),
        std::string("{}{}"), std::string("{\"images\":[{]}"),
        std::string("{\"unknown\":1}"), std::string("{\"model\":1"),
        std::string("{\"model\":\"a"), std::string("{\"model\":\"a\\"),
        std::string("{\"params\":{\"scoreThreshold\":1e999}}"),
        std::string("{\"params\":{\"maxDetections\":99999999999}}"),
        std::string("{\"params\":{\"maxDetections\":1 0}}"),
        std::string("{\"params\":{\"maskEncoding\":\"NONE_SUCH\"}}"),
        std::string("{\"model\":\"\xff\"}"), std::string("\0", 1),
        std::string("{\"images\":[{\"encoded\":\"*\"}]}"), deep,
        deep_objects}) {
    EXPECT_TRUE(absl::StartsWith(ErrorOf(bad), "JSON: ")) << bad;
  }
}

TEST(JsonBodyTest, AnErrorIsShortAndText) {
  const std::string error =
      ErrorOf("{\"a\n\xc3\xa9" + std::string(1000, 'x') + "\":1}");
  EXPECT_LT(error.size(), 1200);
  EXPECT_FALSE(absl::StrContains(error, '\n'));
  EXPECT_EQ(ErrorOf("{\"" + std::string(1000, 'x') + "\":1}").size(),
            std::string("JSON: ").size() + 512);
}

TEST(JsonBodyTest, AnErrorShowsWhatTheClientSent) {
  const std::string base64 = absl::Base64Escape(Picture(2000));
  EXPECT_EQ(ErrorOf(absl::StrCat("{\"images\":[\"", base64, "\"]}")),
            "JSON: (images[0]): invalid value \\\"...\\\" for type "
            "type.googleapis.com/sfmamba.v1.Image; expected an object such as "
            "{\"encoded\": \"<base64>\"}");
  EXPECT_TRUE(absl::EndsWith(
      ErrorOf(WithPicture("data:image/jpeg;base64," + base64)),
      "or a picture in base64 without the URI's part up to the comma"));
}

TEST(JsonBodyTest, LittleIsReadBesidePictures) {
  const std::string expected = "expected at most as many";
  for (const std::string& bomb :
       {std::string(64 << 20, '['), std::string(64 << 20, '1'),
        "{\"images\":[" + std::string(1 << 20, ','),
        [] {
          std::string json = "{\"images\":[{}";
          while (json.size() < 1 << 20) json += ",{}";
          return json + "]}";
        }(),
        [] {
          std::string json = "{\"images\":[";
          while (json.size() < 1 << 20) json += "\"\",";
          return json + "]}";
        }()}) {
    EXPECT_TRUE(absl::StrContains(ErrorOf(bomb), expected));
  }
  // A body whose JSON has exactly the maximum size is accepted.
  // This limit is stated in docs/serving.md.
  constexpr size_t kMostBytes = 256 << 10;
  std::string model = "a";
  std::string most = R"({"images":[{})";
  while (most.size() < kMostBytes - 100) most += ",{}";
  const auto whole = [&] { return most + R"(],"model":")" + model + R"("})"; };
  model.append(kMostBytes - whole().size(), 'a');
  EXPECT_EQ(Read(whole()).model(), model);
  model += 'a';
  EXPECT_TRUE(absl::StrContains(ErrorOf(whole()), expected));
  // White space does not count towards the limit.
  EXPECT_EQ(Read("{" + std::string(1 << 20, '\n') + "\"model\":\"a\"}").model(),
            "a");
}

TEST(JsonBodyTest, EscapedQuotesEndNoString) {
  std::string json = "{\"model\":\"";
  while (json.size() < 900) json += "\\\"\\\\";
  EXPECT_TRUE(absl::StartsWith(Read(json + "\"}").model(), "\"\\\"\\"));
  // The time to read many escapes must only grow in proportion to their number.
  ErrorOf("{\"model\":\"" + std::string(16 << 20, '\\'));
  std::string quotes;
  while (quotes.size() < 16 << 20) quotes += "\\\"";
  ErrorOf("{\"model\":\"" + quotes + "\"}");
}

TEST(JsonBodyTest, NoClientCanNameAPicture) {
  // The reader replaces the first picture by a placeholder of 20 bytes until
  // the JSON is parsed. The second picture has 20 bytes too, but it is no
  // placeholder and must arrive unchanged.
  const std::string forged(20, '\0');
  const v1::DetectRequest request = Read(absl::StrCat(
      R"({"images":[{"encoded":")", absl::Base64Escape(Picture(2000)),
      R"("},{"encoded":")", absl::Base64Escape(forged), R"("}]})"));
  EXPECT_EQ(request.images(1).encoded(), forged);
}

}  // namespace
}  // namespace sfmamba::rest
