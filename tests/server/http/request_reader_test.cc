#include "server/http/request_reader.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

using Stage = RequestReader::Stage;

constexpr RequestReader::Limits kLimits = {1000, 100'000};

class RequestReaderTest : public testing::Test {
 protected:
  // What reading `text` in pieces of `piece` bytes ends with: 200 for a whole
  // request, 0 if more must come, or the status of the refusal. read_ is how
  // much of it was read.
  int StatusOf(absl::string_view text, size_t piece = 1 << 20) {
    reader_ = std::make_unique<RequestReader>(
        limits_, Room::Hold(room_, "ipv4:10.0.0.1:1"));
    read_ = 0;
    while (read_ < text.size()) {
      read_ += reader_->Read(text.substr(read_, piece));
      if (reader_->stage() == Stage::kWhole) return 200;
      if (reader_->stage() == Stage::kRefused) {
        return reader_->refusal().status;
      }
    }
    return 0;
  }
  const std::string& body() { return reader_->head().request.body; }

  RequestReader::Limits limits_ = kLimits;
  std::shared_ptr<Room> room_ = std::make_shared<Room>(1'000'000, 1);
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
  limits_.head_bytes = exact.size();
  EXPECT_EQ(StatusOf(exact), 200);
  limits_.head_bytes = exact.size() - 1;
  EXPECT_EQ(StatusOf(exact), 431);
}

TEST_F(RequestReaderTest, OtherLineBreaksAndControlCharactersAreRefusedAtOnce) {
  for (absl::string_view text :
       {absl::string_view("GET / HTTP/1.1\n"), absl::string_view("\n"),
        absl::string_view("GET / HTTP/1.1\r\nA: b\nC"),
        absl::string_view("GET / HTTP/1.1\r\nA: b\rC"),
        absl::string_view("\r\n\r\n\r\n\r\n"),
        absl::string_view("GET / HTTP/1.1\r\nA: \0", 20),
        absl::string_view("\x16\x03\x01")}) {
    EXPECT_EQ(StatusOf(text), 400) << text;
    EXPECT_EQ(StatusOf(text, 1), 400) << text;
  }
}

TEST_F(RequestReaderTest, ALargeBodyIsRefusedBeforeItComes) {
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 100001\r\n\r\n"), 413);
  EXPECT_EQ(reader_->refusal().message,
            "expected at most 100000 bytes as a request's body, got 100001");
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n"), 0);
  EXPECT_EQ(room_->held(), 100'000);
  const std::string chunked =
      "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(chunked + "fffffff\r\n" + std::string(100'000, 'x')), 0);
  EXPECT_EQ(StatusOf(chunked + "fffffff\r\n" + std::string(100'001, 'x')), 413);
  EXPECT_EQ(room_->held(), 0);
}

TEST_F(RequestReaderTest, NoBodyIsTakenWhereNoneIsAllowed) {
  limits_.body_bytes = 0;
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 1\r\n\r\n"), 413);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            413);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), 200);
}

TEST_F(RequestReaderTest, TakesRoomBeforeTheBodyComes) {
  room_ = std::make_shared<Room>(150'000, 1);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 90000\r\n\r\nx"), 0);
  EXPECT_EQ(room_->held(), 90'000);
  const auto first = std::move(reader_);
  EXPECT_EQ(StatusOf("PUT / HTTP/1.1\r\nContent-Length: 90000\r\n\r\nx"), 503);
  EXPECT_EQ(room_->held(), 90'000);
}

TEST_F(RequestReaderTest, TheRoomOfChunksGrowsWithThemAndTheirMemory) {
  std::string text = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 50; ++i) {
    absl::StrAppend(&text, "3e8\r\n", std::string(1000, 'x'), "\r\n");
  }
  EXPECT_EQ(StatusOf(text), 0);
  EXPECT_GE(room_->held(), 50'000);
  EXPECT_LE(room_->held(), 100'000);
  EXPECT_LE(body().capacity(), room_->held());
  reader_ = nullptr;
  EXPECT_EQ(room_->held(), 0);
  room_ = std::make_shared<Room>(40'000, 1);
  EXPECT_EQ(StatusOf(text), 503);
  EXPECT_EQ(room_->held(), 0);
}

TEST_F(RequestReaderTest, PackedBodiesAreRefused) {
  const std::string head = "PUT / HTTP/1.1\r\nContent-Length: 1\r\n";
  EXPECT_EQ(StatusOf(head + "Content-Encoding: gzip\r\n\r\nx"), 415);
  EXPECT_EQ(StatusOf(head + "Content-Encoding: Identity\r\n\r\nx"), 200);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nContent-Encoding: gzip\r\n\r\n"), 200);
}

}  // namespace
}  // namespace sfmamba::http
