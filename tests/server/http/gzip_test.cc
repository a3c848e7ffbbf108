#include "server/http/gzip.h"

#include <zlib.h>

#include <string>
#include <utility>

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

}  // namespace
}  // namespace sfmamba::http
