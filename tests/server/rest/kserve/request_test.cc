#include "server/rest/kserve/request.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"
#include "server/errors/error.h"
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

absl::StatusOr<KserveRequest> Read(std::optional<std::string> header,
                                   std::string body) {
  return ReadKserveRequest("a", "3",
                           header.has_value()
                               ? std::optional<absl::string_view>(*header)
                               : std::nullopt,
                           std::move(body), 1 << 20, &Memory());
}

// The message that gRPC would have sent.
inference::ModelInferRequest Parsed(KserveRequest request) {
  inference::ModelInferRequest message;
  EXPECT_TRUE(
      grpc::SerializationTraits<inference::ModelInferRequest>::Deserialize(
          &request.message, &message)
          .ok());
  return message;
}

std::string Refused(std::optional<std::string> header, std::string body) {
  const absl::Status status = Read(header, std::move(body)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return absl::StrCat(server::GetErrorDetail(status).field, ": ",
                      status.message());
}

TEST(KserveRequestTest, JsonAloneBecomesRawContents) {
  auto request = Read(std::nullopt, R"({"id": "x", "inputs":
      [{"name": "image", "datatype": "UINT8", "shape": [3],
        "data": [1, 2, 3]}]})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_FALSE(request->outputs.IsBinary(0));
  const inference::ModelInferRequest message = Parsed(*std::move(request));
  EXPECT_EQ(message.model_name(), "a");
  EXPECT_EQ(message.model_version(), "3");
  EXPECT_EQ(message.id(), "x");
  ASSERT_EQ(message.inputs_size(), 1);
  EXPECT_FALSE(message.inputs(0).has_contents());
  EXPECT_THAT(message.raw_input_contents(), testing::ElementsAre("\1\2\3"));
}

TEST(KserveRequestTest, BinaryDataStaysInTheBodysMemory) {
  std::string body = kBinary;
  const size_t json = body.size();
  body += std::string("\3\0\0\0abc", 7);
  const char* tail = body.data() + json;
  auto request = Read(absl::StrCat(json), std::move(body));
  ASSERT_TRUE(request.ok()) << request.status();
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(request->message.Dump(&slices).ok());
  EXPECT_EQ(reinterpret_cast<const char*>(slices.back().begin()), tail);
  EXPECT_EQ(slices.back().size(), 7);
  EXPECT_THAT(Parsed(*std::move(request)).raw_input_contents(),
              testing::ElementsAre(std::string("\3\0\0\0abc", 7)));
}

// The length's encoding grows by a byte at 128, 16384 and so on.
// R5.
TEST(KserveRequestTest, BinaryDataOfAnyLengthArrives) {
  for (const size_t size : {0, 1, 127, 128, 129, 16383, 16384, 16385}) {
    const std::string json =
        absl::StrCat(R"({"inputs": [{"datatype": "UINT8", "shape": [)", size,
                     R"(], "parameters": {"binary_data_size": )", size, "}}]}");
    const std::string data(size, 'x');
    auto request = Read(absl::StrCat(json.size()), json + data);
    ASSERT_TRUE(request.ok()) << size << ": " << request.status();
    EXPECT_THAT(Parsed(*std::move(request)).raw_input_contents(),
                testing::ElementsAre(data))
        << size;
  }
}

TEST(KserveRequestTest, EachInputHasItsPartInTheirOrder) {
  const std::string json =
      R"({"inputs": [{"datatype": "X", "parameters": {"binary_data_size": 2}},
                     {"datatype": "BYTES", "data": ["q"]},
                     {"datatype": "X", "parameters": {"binary_data_size": 0}},
                     {"datatype": "X", "parameters": {"binary_data_size": 200}}
                    ]})";
  auto request =
      Read(absl::StrCat(json.size()), json + "ab" + std::string(200, 'c'));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(Parsed(*std::move(request)).raw_input_contents(),
              testing::ElementsAre("ab", std::string("\1\0\0\0q", 5), "",
                                   std::string(200, 'c')));
}

TEST(KserveRequestTest, ABodyWithoutJsonIsAPicture) {
  auto request = Read("0", std::string(300, 'x'));
  ASSERT_TRUE(request.ok()) << request.status();
  const inference::ModelInferRequest message = Parsed(*std::move(request));
  ASSERT_EQ(message.inputs_size(), 1);
  EXPECT_EQ(message.inputs(0).name(), "image");
  EXPECT_EQ(message.inputs(0).datatype(), "BYTES");
  EXPECT_THAT(message.inputs(0).shape(), testing::ElementsAre(1));
  EXPECT_THAT(message.raw_input_contents(),
              testing::ElementsAre(std::string("\x2c\1\0\0", 4) +
                                   std::string(300, 'x')));
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
  const absl::Status status = Read(std::nullopt, large).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server::GetErrorDetail(status).reason, "QUEUE_FULL");
  // A picture alone is not copied.
  EXPECT_TRUE(Read("0", large).ok());
  held->Release();
  EXPECT_TRUE(Read(std::nullopt, large).ok());
  // Nothing is held afterwards.
  EXPECT_TRUE(Read(std::nullopt, large).ok());
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
