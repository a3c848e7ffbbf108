#include "server/rpc/port/read_pauses.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "gtest/gtest.h"
#include "server/host/peer_name.h"
#include "tests/e2e/raw_http2.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

constexpr int kReadAtOnce = 4 << 10;

// A TCP connection to itself whose bytes are read as gRPC does.
class ReadPausesTest : public testing::Test {
 protected:
  void SetUp() override { Connect(); }

  // Sets sender_ and reader_.
  void Connect() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(bind(listener, name, size), 0);
    ASSERT_EQ(listen(listener, 1), 0);
    ASSERT_EQ(getsockname(listener, name, &size), 0);
    sender_ = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(sender_, name, size), 0);
    reader_ = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
    close(listener);
    const int yes = 1;
    ASSERT_EQ(setsockopt(reader_, SOL_TCP, TCP_INQ, &yes, sizeof(yes)), 0);
  }
  void TearDown() override {
    close(sender_);
    close(reader_);
  }

  void Send(int bytes) {
    const std::string text(bytes, 'x');
    ASSERT_EQ(send(sender_, text.data(), bytes, 0), bytes);
  }
  // Reads until there is nothing to read. Returns the bytes.
  int ReadAll() {
    int all = 0;
    char bytes[kReadAtOnce];
    alignas(cmsghdr) char control[64];
    while (true) {
      iovec part = {bytes, sizeof(bytes)};
      msghdr message = {};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      const ssize_t size = recvmsg(reader_, &message, 0);
      if (size < 0) {
        EXPECT_EQ(errno, EAGAIN);
        return all;
      }
      all += size;
    }
  }

  // Reads once; returns the error, or 0.
  int Read() {
    char bytes[kReadAtOnce];
    iovec part = {bytes, sizeof(bytes)};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    return recvmsg(reader_, &message, 0) < 0 ? errno : 0;
  }

  int sender_ = -1;
  int reader_ = -1;
};

TEST_F(ReadPausesTest, SocketsOfOthersAreReadToTheEnd) {
  Send(3 * ReadPauses::kFirstBytes);
  EXPECT_EQ(ReadAll(), 3 * ReadPauses::kFirstBytes);
}

TEST_F(ReadPausesTest, EachPauseEndsWithAnEvent) {
  ReadPauses::Get().Begin(reader_, 1);
  const int poll = epoll_create1(0);
  epoll_event event = {EPOLLIN | EPOLLET, {}};
  ASSERT_EQ(epoll_ctl(poll, EPOLL_CTL_ADD, reader_, &event), 0);
  constexpr int kSent = 3 * ReadPauses::kFirstBytes;
  Send(kSent);
  WaitUntil(
      [&] {
        int came = 0;
        return ioctl(reader_, FIONREAD, &came) == 0 && came == kSent;
      },
      "all bytes, so that none is read before the others come");
  int all = 0;
  int pauses = 0;
  for (; all < kSent; ++pauses) {
    ASSERT_EQ(epoll_wait(poll, &event, 1, 30'000), 1);
    all += ReadAll();
    if (pauses == 0) EXPECT_EQ(all, ReadPauses::kFirstBytes);
  }
  EXPECT_EQ(all, kSent);
  EXPECT_GE(pauses, 2);
  EXPECT_FALSE(ReadPauses::Get().IsBanned("ipv4:127.0.0.1:1"));
  close(poll);
}

// gRPC reads it when the event of its reset comes, which may be in a pause.
TEST_F(ReadPausesTest, AConnectionThatWasResetIsNotPaused) {
  for (int i = 0; i < 20; ++i) {
    ReadPauses::Get().Begin(reader_, 1);
    Send(3 * ReadPauses::kFirstBytes);
    EXPECT_GE(ReadAll(), ReadPauses::kFirstBytes);
    ReadPauses::Get().Reset(reader_);
    EXPECT_EQ(Read(), ECONNRESET);
    TearDown();
    Connect();
  }
}

TEST_F(ReadPausesTest, BytesThatAreReadInTimeBringNoPause) {
  ReadPauses::Get().Begin(reader_, 1);
  for (int i = 0; i < 20; ++i) {
    Send(kReadAtOnce);
    EXPECT_EQ(ReadAll(), kReadAtOnce);
  }
}

// HTTP/2's preface, and the head of a HEADERS frame of 2 MiB.
constexpr char kEndless[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x20\0\0\1\0\0\0\0\1";

TEST_F(ReadPausesTest, WhoSendsHeadersWithoutEndIsSentAway) {
  // The second has the first one's descriptor.
  for (int i = 0; i < 2; ++i) {
    ReadPauses::Get().Begin(reader_, 1);
    send(sender_, kEndless, sizeof(kEndless) - 1, 0);
    EXPECT_EQ(Read(), ECONNRESET);
    EXPECT_EQ(ReadPauses::Get().TakeEnded(), 1);
    EXPECT_TRUE(ReadPauses::Get().IsBanned("ipv4:127.0.0.1:1"));
    TearDown();
    Connect();
  }
}

// What lies in a buffer behind the received bytes is of an earlier read.
TEST_F(ReadPausesTest, OnlyWhatWasReceivedIsLookedAt) {
  ReadPauses::Get().Begin(reader_, 1);
  const std::string sent = Http2Preface();
  std::string first(sent.size() - 1, ' ');
  std::string second = sent.back() + std::string(kEndless + 24, 9);
  ASSERT_EQ(send(sender_, sent.data(), sent.size(), 0), sent.size());
  iovec parts[] = {{first.data(), first.size()},
                   {second.data(), second.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  EXPECT_EQ(recvmsg(reader_, &message, 0), sent.size());
  EXPECT_EQ(ReadPauses::Get().TakeEnded(), 0);
}

// HTTP/2's preface, and the beginnings of `calls` calls.
std::string Begun(int calls) {
  std::string bytes = Http2Preface();
  for (int i = 0; i < calls; ++i) bytes += Http2Headers(2 * i + 1, "/a/b");
  return bytes;
}

TEST_F(ReadPausesTest, CallsOfAnAddressThatWaitAreFew) {
  constexpr int kMost = 20;
  ReadPauses::Get().SetMostWaiting(kMost);
  const int first_reader = reader_, first_sender = sender_;
  const auto begin = [this](const std::string& bytes) {
    ReadPauses::Get().Begin(reader_, 1);
    send(sender_, bytes.data(), bytes.size(), 0);
    return Read();
  };
  EXPECT_EQ(begin(Begun(kMost)), 0);
  EXPECT_EQ(Read(), EAGAIN) << "they wait on, with nothing to read";
  // One more, of a connection that has few, may be another client's.
  Connect();
  EXPECT_EQ(begin(Begun(15)), 0);
  TearDown();
  Connect();
  EXPECT_EQ(begin(Begun(16)), ECONNRESET);
  EXPECT_EQ(ReadPauses::Get().TakeEnded(), 1);
  TearDown();
  // The calls of a connection that has ended wait no more.
  shutdown(first_sender, SHUT_WR);
  reader_ = first_reader;
  EXPECT_EQ(Read(), 0);
  Connect();
  EXPECT_EQ(begin(Begun(kMost)), 0);
  // Nor do those of a closed one, once its descriptor is another's.
  TearDown();
  Connect();
  ReadPauses::Get().Begin(reader_, 1);
  const int silent_reader = reader_, silent_sender = sender_;
  Connect();
  EXPECT_EQ(begin(Begun(kMost)), 0);
  TearDown();
  Connect();
  EXPECT_EQ(begin(Begun(kMost + 1)), ECONNRESET);
  EXPECT_EQ(ReadPauses::Get().TakeEnded(), 1);
  for (const int fd :
       {first_reader, first_sender, silent_reader, silent_sender}) {
    close(fd);
  }
}

// Such as a connection of a client in the same process.
TEST_F(ReadPausesTest, AnotherSocketOfTheSameDescriptorIsLeftAlone) {
  const int first_reader = reader_, first_sender = sender_;
  const std::string first_peer = server::PeerName(first_reader);
  ReadPauses::Get().Begin(first_reader, 1);
  // Its port may be the first one's, as that is connected to another.
  for (Connect(); server::PeerName(reader_) == first_peer; Connect()) {
    TearDown();
  }
  dup2(reader_, first_reader);
  close(reader_);
  reader_ = first_reader;
  send(sender_, kEndless, sizeof(kEndless) - 1, 0);
  EXPECT_EQ(ReadAll(), sizeof(kEndless) - 1);
  EXPECT_EQ(ReadPauses::Get().TakeEnded(), 0);
  Send(3 * ReadPauses::kFirstBytes);
  EXPECT_EQ(ReadAll(), 3 * ReadPauses::kFirstBytes);
  close(first_sender);
}

TEST(ReadPausesBanTest, BanIsOfTheAddress) {
  ReadPauses& pauses = ReadPauses::Get();
  EXPECT_FALSE(pauses.IsBanned("ipv4:10.0.0.7:5000"));
  pauses.Ban("ipv4:10.0.0.7:5000");
  EXPECT_TRUE(pauses.IsBanned("ipv4:10.0.0.7:5001"));
  EXPECT_FALSE(pauses.IsBanned("ipv4:10.0.0.8:5000"));
}

}  // namespace
}  // namespace sfmamba::rpc
