#include "server/rpc/port/frame_watch.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/raw_http2.h"

namespace sfmamba::rpc {
namespace {

constexpr int64_t kMost = 8 << 10;
constexpr int64_t kCost = FrameWatch::kFrameCost;

// Takes the bytes in pieces of `size`.
bool Take(const std::string& bytes, size_t size) {
  FrameWatch watch;
  for (size_t at = 0; at < bytes.size(); at += size) {
    if (!watch.Take(absl::string_view(bytes).substr(at, size), kMost)) {
      return false;
    }
  }
  return true;
}

// Expects the same whatever pieces the bytes come in.
void ExpectTaken(bool taken, const std::string& frames) {
  for (const size_t size : {1, 2, 9, 24, 1000, 1 << 20}) {
    EXPECT_EQ(Take(Http2Preface() + frames, size), taken) << size;
  }
}

TEST(FrameWatchTest, ABlockMayHaveItsBytesAndNoMore) {
  const std::string most(kMost - kCost, 'x');
  ExpectTaken(true, Http2HeadersPart(1, most));
  ExpectTaken(false, Http2HeadersPart(1, most + "x"));
  const std::string more(kMost - 2 * kCost - 100, 'x');
  const std::string start = Http2HeadersPart(1, std::string(100, 'x'));
  ExpectTaken(true, start + Http2Continuation(1, more));
  ExpectTaken(false, start + Http2Continuation(1, more + "x"));
}

TEST(FrameWatchTest, EmptyFramesCountToo) {
  std::string frames = Http2HeadersPart(1, "");
  for (int i = 1; i < kMost / kCost; ++i) frames += Http2Continuation(1, "");
  ExpectTaken(true, frames);
  ExpectTaken(false, frames + Http2Continuation(1, ""));
}

TEST(FrameWatchTest, CallsAndMessagesMayBeMany) {
  std::string frames;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&frames, Http2Headers(2 * i + 1, "/a/b"), Http2Ping(),
                    Http2Message(2 * i + 1, std::string(2 * kMost, '\1')));
  }
  ExpectTaken(true, frames);
  ExpectTaken(false, frames + Http2HeadersPart(201, std::string(kMost, 'x')));
}

int WaitingAfter(const std::string& frames) {
  FrameWatch watch;
  EXPECT_TRUE(watch.Take(Http2Preface() + frames, kMost));
  return watch.waiting();
}

TEST(FrameWatchTest, CallsWaitUntilTheirMessageComes) {
  const std::string begun = Http2Headers(1, "/a/b") + Http2Headers(3, "/a/b");
  EXPECT_EQ(WaitingAfter(begun), 2);
  EXPECT_EQ(WaitingAfter(begun + Http2Message(1, "", true)), 1);
  EXPECT_EQ(WaitingAfter(begun + Http2Reset(3)), 1);
  // A stream's call does not end with its first message.
  EXPECT_EQ(
      WaitingAfter(begun + Http2Message(1, std::string(1024, 'x'), false)), 1);
  EXPECT_EQ(WaitingAfter(begun + Http2Message(1, "x", false)), 2);
  // A message's five bytes of head count too.
  const std::string most(FrameWatch::kLeastMessage - 6, 'x');
  EXPECT_EQ(WaitingAfter(begun + Http2Message(1, most, false)), 2);
  EXPECT_EQ(WaitingAfter(begun + Http2Message(1, most + "x", false)), 1);
  // Further headers, such as trailers, begin no call.
  EXPECT_EQ(WaitingAfter(begun + Http2Headers(1, "/a/b")), 2);
  EXPECT_EQ(WaitingAfter(begun + Http2Reset(3) + Http2Headers(3, "/a/b")), 1);
}

// A client may begin calls that gRPC refuses, without end.
TEST(FrameWatchTest, ACallIsForgottenWhereCallsAreNotCounted) {
  FrameWatch watch(/*counts_calls=*/false);
  EXPECT_TRUE(watch.Take(Http2Preface() + Http2Headers(1, "/a/b"), kMost));
  EXPECT_EQ(watch.waiting(), 0);
  EXPECT_FALSE(watch.Take(Http2HeadersPart(3, std::string(kMost, 'x')), kMost));
}

// TLS's bytes and those of other protocols are none of its business.
TEST(FrameWatchTest, WhatIsNoHttp2IsNotFollowed) {
  const std::string flood = Http2HeadersPart(1, std::string(kMost, 'x'));
  EXPECT_TRUE(Take("\x16\x03\x01" + flood, 7));
  EXPECT_TRUE(Take("PRI * HTTP/1.1\r\n\r\n" + flood, 7));
}

}  // namespace
}  // namespace sfmamba::rpc
