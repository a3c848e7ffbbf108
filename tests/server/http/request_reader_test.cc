#include "server/http/request_reader.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

using Stage = RequestReader::Stage;

constexpr RequestReader::Limits kLimits = {1000, 100'000};

class RequestReaderTest : public testing::Test {
 protected:
  // Reads `text` in parts of `piece` bytes. Returns 200 after a complete
  // request, 0 if bytes are missing, or the HTTP status of a refusal. Sets
  // `read_` to the number of bytes read.
  int StatusOf(absl::string_view text, size_t piece = 1 << 20) {
    reader_ = std::make_unique<RequestReader>(limits_,
                                              room_->MakeHold("ipv4:10.0.0.1"));
    read_ = 0;
    for (size_t end = piece; read_ < text.size(); end += piece) {
      read_ += reader_->Read(text.substr(0, end).substr(read_));
      if (reader_->stage() == Stage::kWhole) return 200;
      if (reader_->stage() == Stage::kRefused) {
        return reader_->refusal().status;
      }
      if (end >= text.size()) break;
    }
    return 0;
  }
  int StatusWith(const std::string& headers) {
    return StatusOf(absl::StrCat("POST /a HTTP/1.1\r\n", headers, "\r\n\r\n"));
  }
  // Returns the status for a request whose body is sent in chunks.
  int StatusOfChunks(absl::string_view body, size_t piece = 1 << 20) {
    return StatusOf(
        absl::StrCat("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                     body),
        piece);
  }
  const HttpRequest& request() { return reader_->request(); }
  const std::string& body() { return reader_->request().body; }

  RequestReader::Limits limits_ = kLimits;
  std::unique_ptr<Room> room_ = std::make_unique<Room>(1'000'000, 1);
  std::unique_ptr<RequestReader> reader_;
  size_t read_ = 0;
};

TEST_F(RequestReaderTest, ReadsOneRequestHoweverItIsCut) {
  for (const char* text :
       {"GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde",
        "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"
        "0\r\n\r\n"}) {
    const std::string whole = text;
    for (size_t piece = 1; piece < whole.size() + 5; ++piece) {
      EXPECT_EQ(StatusOf(whole + "GET /", piece), 200) << text << piece;
      EXPECT_EQ(read_, whole.size()) << text << piece;
      EXPECT_TRUE(body().empty() || body() == "abcde");
    }
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_EQ(StatusOf(whole.substr(0, size)), 0) << text << size;
    }
  }
}

TEST_F(RequestReaderTest, ALongHeadIsRefusedWhetherItEndsOrNot) {
  const std::string line = absl::StrCat("A: ", std::string(1000, 'x'));
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n" + line), 431);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n" + line + "\r\n\r\n"), 431);
  const std::string exact = "GET / HTTP/1.1\r\nA: b\r\n\r\n";
  const std::string without_end = exact.substr(0, exact.size() - 1);
  limits_.head_bytes = exact.size();
  EXPECT_EQ(StatusOf(exact), 200);
  EXPECT_EQ(StatusOf(without_end), 0);
  limits_.head_bytes = exact.size() - 1;
  EXPECT_EQ(StatusOf(exact), 431);
  EXPECT_EQ(StatusOf(without_end), 431);
}

// Beast limits only the bytes of one call, so the reader needs its own limit.
TEST_F(RequestReaderTest, AHeadThatComesLineByLineIsLimitedToo) {
  std::string text = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, "A: bcde\r\n");
  for (size_t piece = 1; piece < 30; ++piece) {
    EXPECT_EQ(StatusOf(text + "\r\n", piece), 431) << piece;
    EXPECT_LT(read_, 2 * kLimits.head_bytes);
  }
}

TEST_F(RequestReaderTest, HasLineAndHeaders) {
  EXPECT_EQ(StatusOf("POST /a%20b?c=d+e&f=g=h HTTP/1.1\r\nHost: x\r\n"
                     "CONTENT-length:  2 \r\nA: b\r\na: c: d\r\n\r\nxy"),
            200);
  EXPECT_EQ(request().method, "POST");
  EXPECT_EQ(request().path, "/a b");
  EXPECT_EQ(request().query.find("c")->second, "d e");
  EXPECT_EQ(request().query.find("f")->second, "g=h");
  EXPECT_EQ(request().headers.find("host")->second, "x");
  EXPECT_EQ(request().headers.count("a"), 2);
  EXPECT_EQ(request().headers.find("a")->second, "b");
  EXPECT_EQ(body(), "xy");
}

TEST_F(RequestReaderTest, SaysWhetherTheConnectionGoesOn) {
  const std::pair<const char*, bool> heads[] = {
      {"GET / HTTP/1.1\r\n\r\n", true},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n",
       false},
  };
  for (const auto& [text, keep_alive] : heads) {
    EXPECT_EQ(StatusOf(text), 200) << text;
    EXPECT_EQ(reader_->keep_alive(), keep_alive) << text;
  }
}

TEST_F(RequestReaderTest, OtherLinesThanARequestsAreRefused) {
  for (const char* line :
       {"", " ", " GET / HTTP/1.1", "GET  / HTTP/1.1", "G(T / HTTP/1.1", "GET",
        "GET /", "GET /\t HTTP/1.1", "GET /\x80 HTTP/1.1", "GET /%00 HTTP/1.1",
        "GET /%0d%0a HTTP/1.1"}) {
    EXPECT_EQ(StatusOf(absl::StrCat(line, "\r\n\r\n\r\n")), 400) << line;
  }
  for (const char* version : {"HTTP/2.0", "HTTP/1.2", "HTTP/1", "HTTP/1.10",
                              "HTTP/0.9", "HTTQ/1.1", "HTTP/1.1 ", ""}) {
    EXPECT_EQ(StatusOf(absl::StrCat("GET / ", version, "\r\n\r\n\r\n\r\n")),
              505)
        << version;
  }
}

TEST_F(RequestReaderTest, OtherLineBreaksAndControlCharactersAreRefused) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\n\n"), 505);
  EXPECT_EQ(StatusOf("\n"), 400);
  EXPECT_EQ(StatusOf("\x16\x03\x01"), 400);
  EXPECT_EQ(StatusWith("A: b\nC: d"), 400);
  EXPECT_EQ(StatusWith("A: b\rC: d"), 400);
  EXPECT_EQ(StatusWith(std::string("A: \0", 4)), 400);
}

TEST_F(RequestReaderTest, LinesThatAreNoHeadersAreRefused) {
  for (const char* line :
       {"no colon", ": no name", " A: b", "\tA: b", "A : b", "A b: c"}) {
    EXPECT_EQ(StatusWith(line), 400) << line;
  }
}

TEST_F(RequestReaderTest, LengthsThatServersReadInDifferentWaysAreRefused) {
  for (const char* headers :
       {"Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 1",
        "Content-Length: 1\r\ncontent-length: 2", "Content-Length: 1, 2",
        "Content-Length: -1", "Content-Length: +1", "Content-Length: 0x1",
        "Content-Length: 1 1", "Content-Length:", "Content-Length: 1.0",
        "Content-Length: 99999999999999999999",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Host: a\r\nHost: b"}) {
    EXPECT_EQ(StatusWith(headers), 400) << headers;
  }
  for (const char* coding : {"gzip", "xchunked", "gzip, chunked",
                             "chunked, gzip", "chunked, chunked", "",
                             "\x0b"
                             "chunked",
                             "chunked;a=b"}) {
    EXPECT_GE(StatusWith(absl::StrCat("Transfer-Encoding: ", coding)), 400)
        << coding;
  }
  EXPECT_EQ(StatusWith("Transfer-Encoding: gzip"), 501);
  EXPECT_EQ(StatusWith("Transfer-Encoding: Chunked"), 0);
  EXPECT_EQ(StatusOf("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            400);
}

TEST_F(RequestReaderTest, OnlyContinueIsExpected) {
  EXPECT_EQ(StatusWith("Expect: 200-ok"), 417);
  EXPECT_EQ(StatusWith("Expect: 100-Continue"), 200);
  EXPECT_TRUE(reader_->expects_continue());
}

TEST_F(RequestReaderTest, ReadsChunksHoweverTheyAreCut) {
  const std::string chunks =
      "3\r\nabc\r\n00a;x=\"y\"\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
  for (size_t piece = 1; piece <= chunks.size() + 60; ++piece) {
    EXPECT_EQ(StatusOfChunks(chunks + "next", piece), 200) << piece;
    EXPECT_EQ(body(), "abc0123456789") << piece;
    EXPECT_EQ(request().headers.count("a"), 0) << piece;
  }
  for (size_t size = 0; size < chunks.size(); ++size) {
    EXPECT_EQ(StatusOfChunks(chunks.substr(0, size), 5), 0) << size;
  }
}

TEST_F(RequestReaderTest, OtherCodingsAreRefused) {
  // The reader reads complete lines, so the text must contain line ends.
  constexpr char kMore[] = "\r\n\r\n\r\n";
  for (const char* text :
       {"\r\n", "x\r\n", "-1\r\n", "+1\r\na", "0x1\r\na", " 1\r\na", ";\r\n",
        "1\r\nab\r\n", "1\r\na\n0", "1\r\na\r\r", "1\rx",
        "ffffffffffffffffffff\r\n", "0\r\nA\n\r\n\r\n"}) {
    EXPECT_EQ(StatusOfChunks(absl::StrCat(text, kMore)), 400) << text;
    EXPECT_EQ(StatusOfChunks(absl::StrCat(text, kMore), 1), 400) << text;
  }
  EXPECT_EQ(StatusOfChunks(absl::string_view("1;\0\r\n", 5)), 400);
  EXPECT_EQ(StatusOfChunks("1;a=\"b\nc\"\r\n"), 400);
}

TEST_F(RequestReaderTest, ExtensionsOfChunksMayBeSixteenKibibytes) {
  const std::string chunk =
      absl::StrCat("1;", std::string(127, 'x'), "\r\na\r\n");
  std::string chunks;
  for (int i = 0; i < (16 << 10) / 128; ++i) chunks += chunk;
  EXPECT_EQ(StatusOfChunks(chunks + "0\r\n\r\n"), 200);
  EXPECT_EQ(StatusOfChunks(chunks + "1;\r\na\r\n0\r\n\r\n"), 400);
}

TEST_F(RequestReaderTest, MuchElseButDataIsRefused) {
  std::string small_chunks, trailers = "0\r\n";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&small_chunks, "1;", std::string(100, 'x'), "\r\na\r\n");
    absl::StrAppend(&trailers, "A: ", std::string(100, 'x'), "\r\n");
  }
  EXPECT_EQ(StatusOfChunks(small_chunks, 1000), 400);
  EXPECT_EQ(StatusOfChunks(trailers, 1000), 400);
  EXPECT_EQ(StatusOfChunks(std::string(10'000, '0'), 1000), 400);
}

TEST_F(RequestReaderTest, ALargeBodyIsRefusedBeforeItComes) {
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 100001\r\n\r\n"), 413);
  EXPECT_EQ(reader_->refusal().message,
            "expected at most 100000 bytes as a request's body, got more");
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"), 0);
  EXPECT_EQ(room_->held(), 100'000);
  const std::string chunked =
      "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(chunked + "186a1\r\n"), 413);
  EXPECT_EQ(
      StatusOf(chunked + "1869f\r\n" + std::string(99'999, 'x') + "\r\n1\r\n"),
      0);
  EXPECT_EQ(
      StatusOf(chunked + "1869f\r\n" + std::string(99'999, 'x') + "\r\n2\r\n"),
      413);
  EXPECT_EQ(room_->held(), 0);
}

TEST_F(RequestReaderTest, WhatComesWithARefusedHeadIsNotPartOfIt) {
  const std::string body(limits_.head_bytes, 'x');
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 100001\r\n\r\n" + body),
            413);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nExpect: x\r\n\r\n" + body), 417);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nno header\r\n\r\n" + body), 400);
}

TEST_F(RequestReaderTest, NoBodyIsTakenWhereNoneIsAllowed) {
  limits_.body_bytes = 0;
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 1\r\n\r\n"), 413);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            413);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), 200);
}

TEST_F(RequestReaderTest, TakesRoomBeforeTheBodyComes) {
  room_ = std::make_unique<Room>(150'000, 1);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 90000\r\n\r\nx"), 0);
  EXPECT_EQ(room_->held(), 90'000);
  EXPECT_GE(body().capacity(), 90'000) << "it grows, which copies it";
  const auto first = std::move(reader_);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 90000\r\n\r\nx"), 503);
  EXPECT_EQ(room_->held(), 90'000);
}

TEST_F(RequestReaderTest, KnowsHowMuchOfABodyOfKnownLengthIsToCome) {
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 90\r\n"), 0);
  EXPECT_EQ(reader_->content_length_left(), 0);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 90\r\n\r\nab"), 0);
  EXPECT_EQ(reader_->content_length_left(), 88);
  EXPECT_EQ(StatusOfChunks("5\r\nab"), 0);
  EXPECT_EQ(reader_->content_length_left(), 0);
}

TEST_F(RequestReaderTest, AWholeBodyTakesTheRoomThatItNeeds) {
  const std::string body(20'000, 'x');
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 20000\r\n\r\n" + body),
            200);
  EXPECT_EQ(room_->held(), 20'000);
  EXPECT_EQ(reader_->TakeHold()->bytes, 20'000);
  EXPECT_EQ(room_->held(), 0);
}

TEST_F(RequestReaderTest, TheRoomOfChunksGrowsWithThemAndTheirMemory) {
  std::string text = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(text + "1\r\nx\r\n"), 0);
  EXPECT_LE(room_->held(), 16 << 10);
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(&text, "3e8\r\n", std::string(1000, 'x'), "\r\n");
  }
  EXPECT_EQ(StatusOf(text), 0);
  EXPECT_GE(room_->held(), 50'000);
  EXPECT_LE(room_->held(), 100'000);
  EXPECT_LE(body().capacity(), room_->held());
  reader_ = nullptr;
  EXPECT_EQ(room_->held(), 0);
  room_ = std::make_unique<Room>(40'000, 1);
  EXPECT_EQ(StatusOf(text), 503);
  EXPECT_EQ(room_->held(), 0);
}

TEST_F(RequestReaderTest, BodiesMayBePackedInOneWay) {
  const std::string head = "PUT / HTTP/1.1\r\nContent-Length: 1\r\n";
  for (const char* packing : {"br", "gzip, gzip", "zstd", "gzip;q=1"}) {
    EXPECT_EQ(StatusOf(head + "Content-Encoding: " + packing + "\r\n\r\nx"),
              415);
  }
  EXPECT_EQ(StatusOf(head + "Content-Encoding: gzip\r\nContent-Encoding: "
                            "deflate\r\n\r\nx"),
            415);
  for (const char* packing : {"gzip", "x-gzip", "Deflate"}) {
    EXPECT_EQ(StatusOf(head + "Content-Encoding: " + packing + "\r\n\r\nx"),
              200);
  }
  EXPECT_EQ(StatusOf(head + "Content-Encoding: Identity\r\n\r\nx"), 200);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n"), 200);
}

}  // namespace
}  // namespace sfmamba::http
