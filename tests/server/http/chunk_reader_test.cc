#include "server/http/chunk_reader.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

using State = ChunkReader::State;

struct Body {
  State state;
  std::string data;
  size_t read;
};

// Reads `text` in pieces of `piece` bytes.
Body Read(absl::string_view text, size_t piece) {
  ChunkReader reader;
  Body body = {};
  while (body.read < text.size()) {
    const absl::string_view bytes = text.substr(body.read, piece);
    const size_t read = reader.Read(bytes, [&body](absl::string_view data) {
      absl::StrAppend(&body.data, data);
      return true;
    });
    body.read += read;
    if (read < bytes.size()) break;
  }
  body.state = reader.state();
  return body;
}

TEST(ChunkReaderTest, ReadsChunksHoweverTheyAreCut) {
  const std::string text =
      "3\r\nabc\r\n00a;x=\"y\"\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
  for (size_t piece = 1; piece <= text.size() + 4; ++piece) {
    const Body body = Read(text + "next", piece);
    EXPECT_EQ(body.state, State::kDone) << piece;
    EXPECT_EQ(body.data, "abc0123456789") << piece;
    EXPECT_EQ(body.read, text.size()) << piece;
  }
  for (size_t size = 0; size < text.size(); ++size) {
    const State state = Read(text.substr(0, size), 5).state;
    EXPECT_TRUE(state != State::kDone && state != State::kBad) << size;
  }
}

TEST(ChunkReaderTest, OtherCodingsAreBad) {
  for (const char* text :
       {"\r\n", "x\r\n", "-1\r\n", "+1\r\na", "0x1\r\na", " 1\r\na", "1 \r\na",
        ";\r\n", "1\na", "1\r\nab\r\n", "1\r\na\n", "1\r\na\r\r", "1\rx",
        "0\r\nA\n", "1000000000000000\r\n", "ffffffffffffffffffff\r\n"}) {
    EXPECT_EQ(Read(text, 100).state, State::kBad) << text;
    EXPECT_EQ(Read(text, 1).state, State::kBad) << text;
  }
  EXPECT_EQ(Read(absl::string_view("1;\0\r\n", 5), 9).state, State::kBad);
}

TEST(ChunkReaderTest, MuchElseButDataIsBad) {
  std::string small_chunks, trailers = "0\r\n";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&small_chunks, "1;", std::string(100, 'x'), "\r\na\r\n");
    absl::StrAppend(&trailers, "A: ", std::string(100, 'x'), "\r\n");
  }
  EXPECT_EQ(Read(small_chunks, 1000).state, State::kBad);
  EXPECT_EQ(Read(trailers, 1000).state, State::kBad);
  EXPECT_EQ(Read(std::string(10'000, '0'), 1000).state, State::kBad);
}

TEST(ChunkReaderTest, StopsWhenItIsToldTo) {
  ChunkReader reader;
  EXPECT_EQ(reader.Read("3\r\nabc\r\n3\r\nabc\r\n",
                        [](absl::string_view) { return false; }),
            6);
}

}  // namespace
}  // namespace sfmamba::http
