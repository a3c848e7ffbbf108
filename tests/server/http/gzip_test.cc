#include "server/http/gzip.h"

#include <zlib.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

TEST(GzipTest, IsPackedForClientsThatTakeIt) {
  const std::pair<const char*, bool> values[] = {
      {"gzip", true},          {"br, GZIP", true}, {"gzip;q=0.5", true},
      {"deflate, gzip", true}, {"", false},        {"gzip;q=0", false},
      {"gzip ; q=0.0", false}, {"xgzip", false},   {"identity", false}};
  for (const auto& [value, takes] : values) {
    HttpRequest request;
    request.headers.emplace("accept-encoding", value);
    EXPECT_EQ(TakesGzip(request), takes) << value;
  }
  EXPECT_FALSE(TakesGzip(HttpRequest()));
}

TEST(GzipTest, UnpacksToTheSame) {
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(100'000, 'x')}) {
    const std::string packed = Gzip(text);
    std::string unpacked(text.size() + 1, '\0');
    z_stream stream = {};
    ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = packed.size();
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
    stream.avail_out = unpacked.size();
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    unpacked.resize(stream.total_out);
    inflateEnd(&stream);
    EXPECT_EQ(unpacked, text);
  }
}

// Compresses to zlib's format, which HTTP calls "deflate".
std::string Deflate(const std::string& text) {
  std::string packed(compressBound(text.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(text.data()), text.size());
  packed.resize(size);
  return packed;
}

class UnpackTest : public testing::Test {
 protected:
  // Returns 200 if `packed` is decompressed. Otherwise returns the HTTP status
  // of the refusal.
  int Unpack(std::string packed, int64_t max_bytes = 1 << 20) {
    body_ = std::move(packed);
    hold_ = room_.MakeHold("ipv4:10.0.0.7");
    const auto refusal = http::Unpack(max_bytes, &hold_, &body_);
    message_ = refusal.has_value() ? refusal->message : "";
    return refusal.has_value() ? refusal->status : 200;
  }

  Room room_{4 << 20, 1};
  Room::Hold hold_;
  std::string body_, message_;
};

TEST_F(UnpackTest, GivesWhatWasPacked) {
  for (const size_t size : {0, 1, 1000, 300'000}) {
    std::string text(size, 'x');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i >> 7);
    for (const std::string& packed : {Gzip(text), Deflate(text)}) {
      EXPECT_EQ(Unpack(packed), 200);
      EXPECT_EQ(body_, text);
      EXPECT_EQ(room_.held(), size);
    }
  }
  EXPECT_EQ(Unpack(Gzip("a") + Gzip("") + Gzip("b")), 200);
  EXPECT_EQ(body_, "ab");
}

TEST_F(UnpackTest, StopsAtTheLimit) {
  EXPECT_EQ(Unpack(Gzip(std::string(1000, 'x')), 1000), 200);
  EXPECT_EQ(Unpack(Gzip(std::string(1001, 'x')), 1000), 413);
  EXPECT_EQ(Unpack(Gzip(std::string(64 << 20, 'x'))), 413);
  EXPECT_LE(room_.held(), 1 << 20);
}

TEST_F(UnpackTest, StopsWhereThereIsNoRoom) {
  Room::Hold other = room_.MakeHold("ipv4:10.0.0.8");
  ASSERT_TRUE(other.Resize((4 << 20) - 1000));
  EXPECT_EQ(Unpack(Gzip(std::string(1000, 'x'))), 200);
  EXPECT_EQ(Unpack(Gzip(std::string(1001, 'x'))), 503);
  EXPECT_EQ(message_,
            "no room for 1001 bytes of a request's body; ask again later");
}

TEST_F(UnpackTest, RefusesWhatIsBroken) {
  const std::string packed = Gzip(std::string(1000, 'x') + "tail");
  for (size_t size = 0; size < packed.size(); ++size) {
    EXPECT_EQ(Unpack(packed.substr(0, size)), 400) << size;
  }
  EXPECT_TRUE(absl::EndsWith(message_, ": they end early")) << message_;
  std::string other = packed;
  // Changes the checksum.
  other[packed.size() - 6] ^= 1;
  EXPECT_EQ(Unpack(other), 400);
  EXPECT_EQ(Unpack(packed + "rest"), 400);
  EXPECT_EQ(Unpack("{\"json\": 1}"), 400);
  EXPECT_TRUE(absl::EndsWith(message_, ": incorrect header check")) << message_;
}

}  // namespace
}  // namespace sfmamba::http
