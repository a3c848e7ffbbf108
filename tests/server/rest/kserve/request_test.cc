#include "server/rest/kserve/request.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"
#include "server/api/kserve/infer_request.h"
#include "server/errors/error.h"
#include "server/image/image_source.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {
namespace {

using testing::HasSubstr;

constexpr char kBinary[] =
    R"({"inputs": [{"name": "image", "datatype": "BYTES", "shape": [1],)"
    R"( "parameters": {"binary_data_size": 7}}]})";

server::MemoryBudget& Memory() {
  static auto& memory = *new server::MemoryBudget(64 << 20, 24 << 20);
  return memory;
}

// A request that the reader accepted.
struct Asked {
  std::unique_ptr<call::Pictures> pictures;
  inference::ModelInferRequest message;
  OutputForms outputs;

  // Returns the bytes of the i-th image.
  absl::string_view Image(int i) const {
    image::ImageSource source = kserve::ImageOf(message, i);
    pictures->SetBytes(&source);
    return source.encoded() != nullptr ? source.encoded()->bytes
                                       : source.tensor()->data;
  }
};

Asked Read(std::optional<std::string> header, std::string body) {
  http::HttpRequest request;
  request.body = std::move(body);
  if (header.has_value()) {
    request.headers.emplace("inference-header-content-length", *header);
  }
  Asked asked;
  asked.pictures =
      ReadInferBody(absl::OkStatus(), /*max_images=*/64, 1 << 20, &request,
                    &Memory(), &asked.message, &asked.outputs);
  return asked;
}

std::string Refused(std::optional<std::string> header, std::string body) {
  const Asked asked = Read(header, std::move(body));
  const absl::Status& status = asked.pictures->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(asked.pictures->count(), 0);
  EXPECT_EQ(asked.message.ByteSizeLong(), 0);
  return absl::StrCat(server::GetErrorDetail(status).field, ": ",
                      status.message());
}

TEST(KserveRequestTest, JsonAloneBecomesRawContents) {
  const Asked asked = Read(std::nullopt, R"({"id": "x", "inputs":
      [{"name": "image", "datatype": "UINT8", "shape": [2, 3, 1, 1],
        "data": [1, 2, 3, 4, 5, 6]}]})");
  ASSERT_TRUE(asked.pictures->status().ok()) << asked.pictures->status();
  EXPECT_TRUE(asked.pictures->images_status().ok());
  EXPECT_FALSE(asked.outputs.IsBinary(0));
  EXPECT_EQ(asked.message.id(), "x");
  EXPECT_TRUE(kserve::IsRaw(asked.message));
  ASSERT_EQ(asked.pictures->count(), 2);
  EXPECT_EQ(asked.Image(0), "\1\2\3");
  EXPECT_EQ(asked.Image(1), "\4\5\6");
  EXPECT_EQ(asked.pictures->bytes(), 6);
}

TEST(KserveRequestTest, BinaryDataStaysInTheBodysMemory) {
  std::string body = kBinary;
  const size_t json = body.size();
  body += std::string("\3\0\0\0abc", 7);
  const char* file = body.data() + json + 4;
  const size_t size = body.size();
  const Asked asked = Read(absl::StrCat(json), std::move(body));
  ASSERT_TRUE(asked.pictures->status().ok()) << asked.pictures->status();
  ASSERT_EQ(asked.pictures->count(), 1);
  EXPECT_EQ(asked.Image(0), "abc");
  EXPECT_EQ(asked.Image(0).data(), file);
  EXPECT_EQ(asked.pictures->bytes(), size);
}

TEST(KserveRequestTest, BinaryDataOfAnyLengthArrives) {
  for (const size_t size : {1, 127, 128, 129, 16383, 16384, 16385}) {
    const std::string json = absl::StrCat(
        R"({"inputs": [{"name": "image", "datatype": "UINT8", "shape": [1, 3, )",
        size, R"(, 1], "parameters": {"binary_data_size": )", 3 * size, "}}]}");
    const std::string data(3 * size, 'x');
    const Asked asked = Read(absl::StrCat(json.size()), json + data);
    ASSERT_TRUE(asked.pictures->images_status().ok()) << size;
    EXPECT_EQ(asked.Image(0), data) << size;
  }
}

TEST(KserveRequestTest, OneInputIsTaken) {
  const std::string json =
      R"({"inputs": [{"datatype": "X", "parameters": {"binary_data_size": 2}},
                     {"datatype": "BYTES", "data": ["q"]},
                     {"datatype": "X", "parameters": {"binary_data_size": 200}}
                    ]})";
  const Asked asked =
      Read(absl::StrCat(json.size()), json + "ab" + std::string(200, 'c'));
  EXPECT_TRUE(asked.pictures->status().ok()) << asked.pictures->status();
  EXPECT_EQ(server::GetErrorDetail(asked.pictures->images_status()).field,
            "inputs");
  EXPECT_THAT(std::string(asked.pictures->images_status().message()),
              HasSubstr("got 3, expected one"));
}

TEST(KserveRequestTest, ABodyWithoutJsonIsAPicture) {
  for (const size_t size : {0, 300}) {
    const Asked asked = Read("0", std::string(size, 'x'));
    ASSERT_TRUE(asked.pictures->status().ok()) << asked.pictures->status();
    EXPECT_TRUE(kserve::HasFiles(asked.message));
    EXPECT_TRUE(kserve::IsRaw(asked.message));
    ASSERT_EQ(asked.pictures->count(), 1);
    EXPECT_EQ(asked.Image(0), std::string(size, 'x'));
  }
}

TEST(KserveRequestTest, LengthsMustAgree) {
  const std::string json = kBinary;
  const std::string length = absl::StrCat(json.size());
  for (const char* header :
       {"-1", "", "x", "1e2", "99999999999999999999", "1000"}) {
    EXPECT_THAT(
        Refused(header, json),
        HasSubstr(absl::StrCat("Inference-Header-Content-Length: got \"",
                               header, "\", expected 0 to ", json.size())));
  }
  const std::string shown(32, 'x');
  EXPECT_THAT(Refused(shown + "y", json),
              HasSubstr("got \"" + shown + "\", expected 0 to"));
  EXPECT_THAT(Refused(length, json + "123456"),
              HasSubstr("got 6 bytes after the JSON, expected 7 or more"));
  EXPECT_THAT(Refused(length, json + "12345678"),
              HasSubstr("got 1 bytes after the JSON, expected none beyond"));
  EXPECT_THAT(Refused(std::nullopt, json), HasSubstr("got 0 bytes after"));
  EXPECT_THAT(Refused(std::nullopt, json + "1234567"),
              HasSubstr("got no JSON from byte"));
  EXPECT_THAT(Refused(absl::StrCat(json.size() - 1), json + "1234567"),
              HasSubstr("got no JSON from byte"));
  std::string huge = json;
  huge.replace(huge.find(": 7"), 3, ": 9223372036854775807");
  EXPECT_THAT(Refused(absl::StrCat(huge.size()), huge + "1"),
              HasSubstr("got 1 bytes after the JSON"));
}

TEST(KserveRequestTest, JsonIsReadWhileThereIsMemoryForIt) {
  auto held = Memory().Take(server::MemoryUse::kInput, 1 << 20);
  while (held.ok()) {
    const int64_t more = (*held)->bytes + (1 << 20);
    if (!held->Resize(more).ok()) break;
  }
  ASSERT_TRUE(held.ok());
  const std::string large = "{\"a\": \"" + std::string(4 << 20, 'x') + "\"}";
  const absl::Status status = Read(std::nullopt, large).pictures->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server::GetErrorDetail(status).reason, "QUEUE_FULL");
  // A body that contains only a picture takes nothing from the memory budget,
  // because the picture is not copied.
  EXPECT_TRUE(Read("0", large).pictures->status().ok());
  held->Release();
  EXPECT_TRUE(Read(std::nullopt, large).pictures->status().ok());
  // The first reading released its memory.
  EXPECT_TRUE(Read(std::nullopt, large).pictures->status().ok());
}

TEST(KserveRequestTest, OutputsComeInTheFormTheyAreAskedFor) {
  OutputForms forms;
  EXPECT_TRUE(forms.AnyJson());
  forms.default_binary = true;
  EXPECT_FALSE(forms.AnyJson());
  EXPECT_TRUE(forms.IsBinary(3));
  forms.binary = {std::nullopt, false, true};
  EXPECT_TRUE(forms.AnyJson());
  EXPECT_TRUE(forms.IsBinary(0));
  EXPECT_FALSE(forms.IsBinary(1));
  EXPECT_TRUE(forms.IsBinary(2));
  forms = {{true, true}, false};
  EXPECT_FALSE(forms.AnyJson());
}

}  // namespace
}  // namespace sfmamba::rest
