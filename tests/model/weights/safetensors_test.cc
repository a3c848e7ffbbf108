#include "model/weights/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string TestPath() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  return absl::StrCat(testing::TempDir(), "/", info->test_suite_name(), ".",
                      info->name(), ".safetensors");
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string LittleEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

// Returns a file with this header, followed by `data_size` bytes 0, 1, 2, ...
std::string FileOf(const std::string& header, int data_size) {
  std::string file = LittleEndian(header.size()) + header;
  for (int i = 0; i < data_size; ++i) file.push_back(static_cast<char>(i));
  return file;
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> OpenBytes(
    const std::string& bytes) {
  const std::string path = TestPath();
  WriteBytes(path, bytes);
  return SafetensorsFile::Open(path);
}

// Expects that the file is refused with an error that contains `message`.
void ExpectRefused(const std::string& bytes, const std::string& message) {
  const absl::Status status = OpenBytes(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  EXPECT_TRUE(absl::StartsWith(status.message(), "SafetensorsTest."))
      << status.message();
}

TEST(SafetensorsTest, ReadsWhatItWrote) {
  const std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::map<std::string, TensorView> tensors = {
      {"a.bias", {DType::kU8, {3}, absl::MakeSpan(bytes).subspan(0, 3)}},
      {"b \"quoted\" \\ \n \xc3\xa9", {DType::kF32, {3, 1}, bytes}},
      {"scalar", {DType::kI64, {}, absl::MakeSpan(bytes).subspan(0, 8)}},
      {"empty", {DType::kF16, {4, 0}, {}}},
  };
  ASSERT_EQ(WriteSafetensors(TestPath(), tensors), absl::OkStatus());
  const auto file = SafetensorsFile::Open(TestPath());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->tensors().size(), tensors.size());
  for (const auto& [name, expected] : tensors) {
    const TensorView* got = (*file)->Find(name);
    ASSERT_NE(got, nullptr) << name;
    EXPECT_EQ(got->dtype, expected.dtype);
    EXPECT_EQ(got->shape, expected.shape);
    EXPECT_THAT(got->data, ElementsAreArray(expected.data));
  }
  EXPECT_EQ((*file)->Find("other"), nullptr);
}

TEST(SafetensorsTest, ReadsForeignLayouts) {
  // The header has members in any order, white space, escapes and metadata. The
  // data is misaligned, and the tensors are not sorted by name.
  const auto file = OpenBytes(FileOf(
      R"({"__metadata__" : {"format":"pt","\u00e9":""},)"
      "\n\t"
      R"("z\u0041\ud83d\ude00": {"data_offsets":[0,1],"shape":[],"dtype":"U8"},)"
      R"( "a":{"dtype":"BF16", "shape":[2, 1], "data_offsets":[1,5]}}   )",
      5));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->tensors().size(), 2);
  const TensorView* z = (*file)->Find("zA\xf0\x9f\x98\x80");
  ASSERT_NE(z, nullptr);
  EXPECT_THAT(z->shape, IsEmpty());
  EXPECT_THAT(z->data, ElementsAre(0));
  const TensorView* a = (*file)->Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->dtype, DType::kBF16);
  EXPECT_THAT(a->shape, ElementsAre(2, 1));
  EXPECT_THAT(a->data, ElementsAre(1, 2, 3, 4));
}

TEST(SafetensorsTest, EscapesReachTheEndsOfWhatUnicodeHas) {
  const auto file = OpenBytes(FileOf(
      R"({"\ud800\udc00\udbff\udfff\u007f\u0080\u07ff\u0800\ud7ff\ue000": )"
      R"({"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
      1));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_NE((*file)->Find("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\x7f\xc2\x80\xdf\xbf"
                          "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"),
            nullptr);
}

TEST(SafetensorsTest, NoTensorsIsAFile) {
  const auto file = OpenBytes(FileOf("{}", 0));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->tensors().empty());
}

TEST(SafetensorsTest, NoFileIsNotFound) {
  const absl::Status status =
      SafetensorsFile::Open("/no/such/folder/weights").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("weights"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("folder")));
}

TEST(SafetensorsTest, FoldersAndPipesAreRefused) {
  EXPECT_EQ(SafetensorsFile::Open(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::string pipe = TestPath() + ".pipe";
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(SafetensorsFile::Open(pipe).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SafetensorsTest, RefusesLengthsThatDoNotFit) {
  ExpectRefused("", "expected at least 8 bytes, got 0");
  ExpectRefused("1234567", "expected at least 8 bytes, got 7");
  ExpectRefused(LittleEndian(1), "expected at most 0, got 1");
  ExpectRefused(LittleEndian(3) + "{}", "header length");
  ExpectRefused(LittleEndian(~uint64_t{0}) + "{}", "18446744073709551615");
  ExpectRefused(LittleEndian(uint64_t{1} << 63) + "{}", "header length");
  // The header fits the file but exceeds the limit.
  ExpectRefused(FileOf(std::string(10'000'001, ' '), 0),
                "expected at most 10000000, got 10000001");
}

TEST(SafetensorsTest, RefusesWhatIsNotTheGrammar) {
  struct Case {
    std::string header;
    std::string message;
  };
  const std::string t = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  const std::vector<Case> cases = {
      {"", "expected '{'"},
      {" {}", "expected '{'"},
      {"[]", "expected '{'"},
      {"null", "expected '{'"},
      {"{", "expected '\"'"},
      {"{} x", "bytes after"},
      {"{}{}", "bytes after"},
      {std::string("{}\0", 3), "bytes after"},
      {"{,}", "expected '\"'"},
      {"{\"t\":" + t + ",}", "expected '\"'"},
      {"{\"t\":" + t, "expected '}'"},
      {"{\"t\" " + t + "}", "expected ':'"},
      {"{t:" + t + "}", "expected '\"'"},
      {"{\"t\":" + t + ",\"t\":" + t + "}", "tensor \"t\": twice"},
      {"{\"t\":" + t + ",\"\\u0074\":" + t + "}", "tensor \"t\": twice"},
      {R"({"t":[]})", "expected '{'"},
      {R"({"t":{}})", "tensor \"t\": expected dtype, shape and data_offsets"},
      {R"({"t":{"dtype":"U8","shape":[1]}})", "expected dtype, shape"},
      {R"({"t":{"dtype":"U8","dtype":"U8"}})", "dtype twice"},
      {R"({"t":{"shape":[1],"shape":[1]}})", "shape twice"},
      {R"({"t":{"data_offsets":[0,1],"data_offsets":[0,1]}})", "twice"},
      {R"({"t":{"kind":"U8"}})", "expected a known member"},
      {R"({"t":{"dtype":8}})", "expected '\"'"},
      {R"({"t":{"shape":1}})", "expected '['"},
      {R"({"t":{"shape":[1,]}})", "expected a whole number"},
      {R"({"t":{"shape":[-1]}})", "expected a whole number"},
      {R"({"t":{"shape":[+1]}})", "expected a whole number"},
      {R"({"t":{"shape":[1.5]}})", "expected ']'"},
      {R"({"t":{"shape":[1e3]}})", "expected ']'"},
      {R"({"t":{"shape":[01]}})", "leading zero"},
      {R"({"t":{"shape":["1"]}})", "expected a whole number"},
      {R"({"t":{"shape":[[[[[[[[[[[[1]]]]]]]]]]]]}})", "whole number"},
      {R"({"t":{"shape":[9223372036854775808]}})", "too large"},
      {R"({"t":{"shape":[99999999999999999999999999]}})", "too large"},
      {R"({"t":{"shape":[1,1,1,1,1,1,1,1,1]}})", "at most 8"},
      {R"({"t":{"data_offsets":[]}})", "two numbers"},
      {R"({"t":{"data_offsets":[0]}})", "two numbers"},
      {R"({"t":{"data_offsets":[0,1,2]}})", "at most 2"},
      {R"({"__metadata__":{"a":1}})", "expected '\"'"},
      {R"({"__metadata__":{"a":{}}})", "expected '\"'"},
      {R"({"__metadata__":{},"__metadata__":{}})", "__metadata__ twice"},
      {R"({"t)", "expected '\"'"},
      {"{\"\n\":" + t + "}", "control character"},
      {std::string("{\"\0\":", 5) + t + "}", "control character"},
      {R"({"\x":)" + t + "}", "invalid escape"},
      {R"({"\)", "invalid escape"},
      {R"({"\u00g0":)" + t + "}", "hexadecimal"},
      {R"({"\u00)", "hexadecimal"},
      {R"({"\udc00":)" + t + "}", "lone surrogate"},
      {R"({"\ud800":)" + t + "}", "lone surrogate"},
      {R"({"\ud800\n":)" + t + "}", "lone surrogate"},
      {R"({"\ud800\u0041":)" + t + "}", "lone surrogate"},
      {R"({"\ud800\udbff":)" + t + "}", "lone surrogate"},
      {R"({"\ud800\ue000":)" + t + "}", "lone surrogate"},
      {"{\"\x80\":" + t + "}", "invalid UTF-8"},
      {"{\"\xc0\x80\":" + t + "}", "invalid UTF-8"},
      {"{\"\xc1\xbf\":" + t + "}", "invalid UTF-8"},
      {"{\"\xe0\x80\x80\":" + t + "}", "invalid UTF-8"},
      {"{\"\xed\xa0\x80\":" + t + "}", "invalid UTF-8"},
      {"{\"\xf0\x80\x80\x80\":" + t + "}", "invalid UTF-8"},
      {"{\"\xf4\x90\x80\x80\":" + t + "}", "invalid UTF-8"},
      {"{\"\xf8\x88\x80\x80\x80\":" + t + "}", "invalid UTF-8"},
      {"{\"\xc3", "invalid UTF-8"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.header);
    ExpectRefused(FileOf(c.header, 1), c.message);
  }
}

TEST(SafetensorsTest, RefusesDeepNestingWithoutRecursion) {
  ExpectRefused(FileOf(R"({"t":{"shape":)" + std::string(1'000'000, '['), 0),
                "expected a whole number");
  std::string nested = "{\"__metadata__\":";
  for (int i = 0; i < 100'000; ++i) nested += "{\"a\":";
  ExpectRefused(FileOf(nested, 0), "expected '\"'");
}

TEST(SafetensorsTest, RefusesTensorsThatDoNotFitTheData) {
  struct Case {
    std::string header;
    std::string message;
  };
  const auto tensor = [](const std::string& name, const std::string& dtype,
                         const std::string& shape, const std::string& offsets) {
    return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":[",
                        shape, "],\"data_offsets\":[", offsets, "]}");
  };
  const std::vector<Case> cases = {
      {tensor("t", "F31", "4", "0,16"), "tensor \"t\": unknown type \"F31\""},
      {tensor("t", "f32", "4", "0,16"), "unknown type"},
      {tensor("t", "", "4", "0,16"), "unknown type"},
      {tensor("t", "F32", "4", "16,0"), "outside the 16 bytes"},
      {tensor("t", "F32", "5", "0,20"), "outside the 16 bytes"},
      {tensor("t", "U8", "1", "9223372036854775806,9223372036854775807"),
       "outside the 16 bytes"},
      {tensor("t", "F32", "3", "0,16"),
       "tensor \"t\": F32 of shape [3]: expected 12 bytes, got 16"},
      {tensor("t", "F32", "", "0,16"), "expected 4 bytes, got 16"},
      {tensor("t", "F32", "0", "0,16"), "expected 0 bytes, got 16"},
      {tensor("t", "F32", "2,3", "0,16"), "expected 24 bytes, got 16"},
      // The number of elements, 2^62 * 4, is 0 modulo 2^64.
      {tensor("t", "U8", "4611686018427387904,4", "0,0"), "fewer"},
      {tensor("t", "F32", "4294967296,4294967296", "0,0"), "fewer"},
      {tensor("t", "F32", "9223372036854775807,9223372036854775807,0", "0,0"),
       "fewer"},
      {tensor("t", "U8", "15", "0,15"), "expected 15 bytes of data, got 16"},
      {tensor("t", "U8", "15", "1,16"),
       "tensor \"t\": expected to begin at byte 0 of the data, got 1"},
      {"", "expected 0 bytes of data, got 16"},
      {tensor("a", "U8", "8", "0,8") + "," + tensor("b", "U8", "7", "9,16"),
       "tensor \"b\": expected to begin at byte 8 of the data, got 9"},
      {tensor("a", "U8", "8", "0,8") + "," + tensor("b", "U8", "9", "7,16"),
       "tensor \"b\": expected to begin at byte 8 of the data, got 7"},
      {tensor("a", "U8", "16", "0,16") + "," + tensor("b", "U8", "16", "0,16"),
       "expected to begin at byte 16"},
      {tensor("a", "U8", "16", "0,16") + "," + tensor("b", "U8", "2", "4,6"),
       "expected to begin at byte 16"},
      {tensor("a", "U8", "16", "0,16") + "," + tensor("b", "U8", "0", "4,4"),
       "expected to begin at byte 16"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.header);
    ExpectRefused(FileOf("{" + c.header + "}", 16), c.message);
  }
}

TEST(SafetensorsTest, APointerOfGitLfsIsNamed) {
  ExpectRefused("version https://git-lfs.github.com/spec/v1\n", "Git LFS");
}

TEST(SafetensorsTest, APageOfErrorsIsNamed) {
  ExpectRefused(
      "<html>\n<title>404 Not Found</title>\n",
      "text, such as a page of errors, that begins with \"<html>\\n<");
  ExpectRefused(R"({"error":"Invalid credentials"})", "begins with");
}

TEST(SafetensorsTest, ShapesAreReadWithoutTheData) {
  // The file is sparse. It has a terabyte, but takes no disk space, and reading
  // its header takes little memory.
  const int64_t size = int64_t{1} << 40;
  const std::string header =
      absl::StrCat(R"({"a":{"dtype":"U8","shape":[)", size,
                   R"(],"data_offsets":[0,)", size, "]}}");
  WriteBytes(TestPath(), LittleEndian(header.size()) + header);
  ASSERT_EQ(truncate(TestPath().c_str(), 8 + header.size() + size), 0);
  const auto shapes = ReadSafetensorsShapes(TestPath());
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_THAT(shapes->at("a").shape, ElementsAre(size));
  EXPECT_THAT(shapes->at("a").data, IsEmpty());
  ASSERT_EQ(truncate(TestPath().c_str(), 8 + header.size() + size - 1), 0);
  EXPECT_EQ(ReadSafetensorsShapes(TestPath()).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(truncate(TestPath().c_str(), 0), 0);  // Frees its disk blocks.
}

TEST(SafetensorsTest, WhatHappensToTheFileLaterChangesNothing) {
  const auto file = OpenBytes(
      FileOf(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(truncate(TestPath().c_str(), 0), 0);
  EXPECT_THAT((*file)->Find("a")->data, ElementsAre(0, 1, 2));
}

TEST(SafetensorsTest, MessagesHoldNoControlCharactersAndNoLongNames) {
  const std::string name = "\\n\\u001b" + std::string(5000, 'x');
  const absl::Status status =
      OpenBytes(FileOf("{\"" + name + "\":{}}", 0)).status();
  EXPECT_LT(status.message().size(), 500);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\\n\\x1bxxx"));
}

TEST(SafetensorsTest, WritingRefusesWrongSizesAndPaths) {
  const uint8_t bytes[4] = {};
  EXPECT_EQ(
      WriteSafetensors(TestPath(), {{"t", {DType::kF32, {2}, bytes}}}).code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(WriteSafetensors("/no/such/folder/weights", {}).ok());
}

TEST(SafetensorsTest, TypesHaveNamesAndSizes) {
  struct Case {
    DType dtype;
    const char* name;
    int size;
  };
  for (const Case& c : std::vector<Case>{
           {DType::kBool, "BOOL", 1},
           {DType::kU8, "U8", 1},
           {DType::kI8, "I8", 1},
           {DType::kF8E4M3, "F8_E4M3", 1},
           {DType::kF8E5M2, "F8_E5M2", 1},
           {DType::kU16, "U16", 2},
           {DType::kI16, "I16", 2},
           {DType::kF16, "F16", 2},
           {DType::kBF16, "BF16", 2},
           {DType::kU32, "U32", 4},
           {DType::kI32, "I32", 4},
           {DType::kF32, "F32", 4},
           {DType::kU64, "U64", 8},
           {DType::kI64, "I64", 8},
           {DType::kF64, "F64", 8},
       }) {
    EXPECT_EQ(DTypeName(c.dtype), c.name);
    EXPECT_EQ(DTypeSize(c.dtype), c.size) << c.name;
  }
}

TEST(SafetensorsTest, WrittenDataBeginAtAMultipleOfEight) {
  const uint8_t bytes[4] = {};
  for (size_t length = 1; length <= 8; ++length) {
    const std::string name(length, 'x');
    ASSERT_EQ(WriteSafetensors(TestPath(), {{name, {DType::kF32, {1}, bytes}}}),
              absl::OkStatus());
    EXPECT_EQ(std::ifstream(TestPath(), std::ios::binary).get() % 8, 0);
    EXPECT_TRUE(SafetensorsFile::Open(TestPath()).ok());
  }
}

}  // namespace
}  // namespace sfmamba::weights
