#include "base/image_format.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/picture.h"

namespace sfmamba::base {
namespace {

using ::testing::HasSubstr;

TEST(FormatOfTest, KnowsWhatIsTakenByItsFirstBytes) {
  const RgbImage picture = server::Gradient(8, 8);
  EXPECT_EQ(FormatOf(server::EncodeJpeg(picture)), ImageFormat::kJpeg);
  EXPECT_EQ(FormatOf(server::EncodePng(picture)), ImageFormat::kPng);
  EXPECT_EQ(FormatOf(server::EncodeWebp(picture, true)), ImageFormat::kWebp);
  for (const char* other : {"", "\xFF", "\x89PNG", "RIFF1234WEB", "GIF89a"}) {
    EXPECT_EQ(FormatOf(other), std::nullopt) << other;
  }
}

TEST(ForeignFormatTest, NamesWhatTheFileIs) {
  const auto bytes = [](absl::string_view start) {
    return std::string(start) + std::string(64, '\0');
  };
  const struct {
    std::string file, name;
  } cases[] = {
      {bytes("GIF89a"), "a GIF"},
      {bytes("GIF87a"), "a GIF"},
      {bytes({"BM\x36\x10\0\0", 6}), "a BMP"},
      {bytes({"II*\0", 4}), "a TIFF"},
      {bytes({"MM\0*", 4}), "a TIFF"},
      {bytes({"\0\0\0\x18"
              "ftypheic",
              12}),
       "a HEIC"},
      {bytes({"\0\0\0\x18"
              "ftypmif1\0\0\0\0mif1heic",
              24}),
       "a HEIC"},
      {bytes({"\0\0\0\x1C"
              "ftypavif",
              12}),
       "an AVIF"},
      {bytes({"\0\0\0\x1C"
              "ftypmif1\0\0\0\0mif1avif",
              24}),
       "an AVIF"},
      {bytes({"\0\0\0\x1C"
              "ftypisom",
              12}),
       "a video"},
      {bytes("\xFF\x0A"), "a JPEG XL"},
      {bytes({"\0\0\0\x0CJXL \r\n\x87\n", 12}), "a JPEG XL"},
      {"%PDF-1.7\n", "a PDF"},
      {"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG"},
      {"<?xml version='1.0'?>\n<!-- made -->\n<svg/>", "an SVG"},
      {"<?xml version='1.0'?><a/>", "XML"},
      {"\xEF\xBB\xBF\n <!DOCTYPE HTML><title>404</title>", "an HTML page"},
      {"<html><body><svg/></body></html>", "an HTML page"},
      {"{\"image\": 1}", "JSON"},
      {" [1, 2]", "JSON"},
      {bytes("PK\3\4"), "a ZIP archive"},
      {bytes({"\0\0\0\x0CjP  \r\n\x87\n", 12}), "a JPEG 2000"},
      {bytes("\xFF\x4F\xFF\x51"), "a JPEG 2000"},
      {bytes({"\0\0\1\0\1\0", 6}), "an ICO"},
      {bytes("8BPS"), "a PSD"},
      {bytes("\x1A\x45\xDF\xA3"), "a video"},
      {bytes("\x1F\x8B"), "a file packed by gzip"},
      {bytes("\x89PNG\n\x1A\n"), "a PNG that was changed as if it were text"},
      {"data:image/png;base64,iVBORw0KGgo=",
       "a data: URI, not the bytes in it"},
      {"", "nothing, 0 bytes"},
      {"a picture of a chair\n", "text"},
      {"BM, a car maker", "text"},
      {bytes("a picture of a chair"),
       "no known kind of file, it begins with the bytes 6120706963747572"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ForeignFormat(c.file);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(status.message(),
              "this is " + c.name + "; JPEG, PNG and WebP are taken");
  }
}

TEST(ForeignFormatTest, NamesAPictureInBase64) {
  const RgbImage picture = server::Gradient(8, 8);
  const struct {
    std::string file, name;
  } cases[] = {{server::EncodeJpeg(picture), "a JPEG"},
               {server::EncodePng(picture), "a PNG"},
               {server::EncodeWebp(picture, true), "a WebP"}};
  for (const auto& c : cases) {
    for (const std::string& text :
         {absl::Base64Escape(c.file), absl::WebSafeBase64Escape(c.file)}) {
      EXPECT_EQ(ForeignFormat(text).message(),
                "this is " + c.name +
                    " in base64, not its bytes; JPEG, PNG and WebP are taken");
    }
  }
}

TEST(ForeignFormatTest, AnyPrefixIsNamed) {
  for (const std::string& file :
       {std::string("\0\0\0\x1C"
                    "ftypmif1\0\0\0\0mif1avif",
                    24),
        std::string("BM\x36\x10\0\0\0\0\0\0\0\0\0\0", 14)}) {
    for (size_t size = 0; size <= file.size(); ++size) {
      EXPECT_THAT(std::string(ForeignFormat(file.substr(0, size)).message()),
                  HasSubstr("JPEG, PNG and WebP are taken"));
    }
  }
}

}  // namespace
}  // namespace sfmamba::base
