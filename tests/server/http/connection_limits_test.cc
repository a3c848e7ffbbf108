// Tests limits of time and memory: for answers that the client does not read,
// for bodies that arrive slowly or find no room, and for idle connections.

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/server/http/connection_fixture.h"
#include "tests/server/http/raw_client.h"
#include "tests/testing/patience.h"

namespace sfmamba::http {
namespace {

using ConnectionLimitsTest = ConnectionTest;

TEST_F(ConnectionLimitsTest, ALargeAnswerThatNobodyReadsKeepsNobodyWaiting) {
  options_.answer_time = absl::Hours(1);
  Start();
  RawClient client(server_->port(), 4096);
  client.Send(kGet);
  absl::Notification sent;
  Next()->Answer(Large(), [&sent] { sent.Notify(); });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Other(), "other");
  EXPECT_FALSE(sent.HasBeenNotified());
  EXPECT_EQ(server_->held_bytes(), 64 << 20);
  server_ = nullptr;
  WaitFor(sent, "the answer to be given up");
}

TEST_F(ConnectionLimitsTest, AClientThatSendsAndDoesNotReadIsReadNoFurther) {
  options_.answer_time = absl::Hours(1);
  Start();
  RawClient client(server_->port(), 4096);
  client.Send(kGet);
  // `sent` is shared, because the server also notifies it when the server ends.
  const auto sent = std::make_shared<absl::Notification>();
  Next()->Answer(Large(), [sent] { sent->Notify(); });
  constexpr int64_t kMuch = 64 << 20;  // More than the sockets buffer.
  EXPECT_LT(client.SendWhileItIsRead(kMuch), kMuch);
  EXPECT_FALSE(sent->HasBeenNotified());
  EXPECT_EQ(Other(), "other");
}

TEST_F(ConnectionLimitsTest, AnAnswerThatIsNotTakenInTimeIsGivenUp) {
  options_.answer_time = absl::Milliseconds(50);
  Start();
  RawClient client(server_->port(), 4096);
  client.Send(kGet);
  absl::Notification cancelled, sent;
  auto exchange = Next();
  exchange->OnCancel([&] {
    EXPECT_FALSE(sent.HasBeenNotified());
    cancelled.Notify();
  });
  exchange->Answer(Large(), [&sent] { sent.Notify(); });
  WaitFor(sent, "the answer to be given up");
  EXPECT_TRUE(cancelled.HasBeenNotified());
}

TEST_F(ConnectionLimitsTest, ABodyThatStopsIsRefused) {
  options_.head_time = absl::Milliseconds(50);
  Start();
  for (const char* headers :
       {"Content-Length: 10", "Transfer-Encoding: chunked"}) {
    RawClient client(server_->port());
    client.Send(
        absl::StrCat("POST /a HTTP/1.1\r\n", headers, "\r\n\r\n5\r\nab"));
    EXPECT_TRUE(absl::StartsWith(client.ReadAll(), "HTTP/1.1 408")) << headers;
    EXPECT_EQ(server_->held_bytes(), 0);
  }
}

TEST_F(ConnectionLimitsTest, ABodyMustComeAtTheLeastRate) {
  options_.head_time = absl::Milliseconds(50);
  options_.min_body_rate = int64_t{1} << 40;
  Start();
  RawClient client(server_->port());
  client.Send("POST /a HTTP/1.1\r\nContent-Length: 10000000\r\n\r\n");
  TimeLimit limit("the refusal of a slow body");
  while (client.Send("x")) {
  }
}

TEST_F(ConnectionLimitsTest, ABodyThatComesAtTheLeastRateIsWaitedFor) {
  options_.head_time = absl::Milliseconds(1);
  options_.min_body_rate = 1;
  Start();
  RawClient client(server_->port());
  client.Send("POST /a HTTP/1.1\r\nContent-Length: 1001\r\n\r\n" +
              std::string(1000, 'x'));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Other(), "other");
  client.Send("x");
  Next()->Answer(Text("done"), [] {});
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "done"));
}

TEST_F(ConnectionLimitsTest, ABodyMustComeInItsTimeAtAnyRate) {
  options_.body_time = absl::Milliseconds(50);
  options_.min_body_rate = 1;
  Start();
  RawClient client(server_->port());
  client.Send("POST /a HTTP/1.1\r\nContent-Length: 1001\r\n\r\n" +
              std::string(1000, 'x'));
  EXPECT_TRUE(absl::StartsWith(client.ReadAll(), "HTTP/1.1 408"));
}

TEST_F(ConnectionLimitsTest, ARefusedClientThatSendsOnIsCutOff) {
  options_.admit = [](HttpRequest&) { return Text("refused"); };
  Start();
  RawClient client(server_->port());
  client.Send("POST /a HTTP/1.1\r\nContent-Length: 60000000\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "\r\n\r\nrefused"));
  const std::string part(1 << 20, 'x');
  int parts = 0;
  while (client.Send(part)) ++parts;
  // The server reads about four parts, and the sockets buffer some more.
  EXPECT_LT(parts, 64);
}

TEST_F(ConnectionLimitsTest, ARefusedClientThatStaysIsCutOffSoon) {
  options_.answer_time = options_.idle_time = absl::Hours(1);
  options_.admit = [](HttpRequest&) { return Text("refused"); };
  Start();
  RawClient client(server_->port());
  client.Send("POST /a HTTP/1.1\r\nContent-Length: 60000000\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(client.ReadAll(), "\r\n\r\nrefused"));
  WaitUntil([&client] { return !client.Send("x"); }, "the connection's end");
}

TEST_F(ConnectionLimitsTest, ASlowClientThatStaysIsCutOffToo) {
  options_.answer_time = absl::Hours(1);
  options_.head_time = absl::Milliseconds(50);
  Start();
  RawClient client(server_->port());
  client.Send("GET /a");
  EXPECT_TRUE(absl::StartsWith(client.ReadAll(), "HTTP/1.1 408"));
  WaitUntil([&client] { return !client.Send("x"); }, "the connection's end");
}

TEST_F(ConnectionLimitsTest, AHeadThatDripsHasNoMoreTime) {
  options_.head_time = absl::Milliseconds(50);
  options_.max_head_bytes = 1 << 30;
  Start();
  RawClient client(server_->port());
  client.Send("GET /a HTTP/1.1\r\nA: ");
  TimeLimit limit("the refusal of a slow head");
  while (client.Send("x")) {
  }
}

TEST_F(ConnectionLimitsTest,
       BodiesBeyondTheRoomAreRefusedUntilOthersAreAnswered) {
  options_.max_body_bytes = 60'000;
  options_.max_held_bytes = 100'000;
  options_.client_share = 1;
  Start();
  const std::string head = "POST /a HTTP/1.1\r\nContent-Length: 60000\r\n";
  const std::string body(60000, 'x');
  RawClient first(server_->port());
  first.Send(head + "\r\n" + body);
  auto exchange = Next();
  EXPECT_EQ(server_->held_bytes(), 60000);
  {
    RawClient second(server_->port());
    second.Send(head + "Expect: 100-continue\r\n\r\n");
    const std::string answer = second.ReadAll();
    EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 503")) << answer;
    EXPECT_TRUE(absl::StrContains(answer, "\r\nRetry-After: 1\r\n"));
  }
  {
    RawClient chunked(server_->port());
    chunked.Send("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    chunked.Send(absl::StrCat("EA60\r\n", body, "\r\n0\r\n\r\n"));
    const std::string answer = chunked.ReadAll();
    EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 503")) << answer;
  }
  EXPECT_EQ(Other(), "other");
  exchange->Answer(Text("done"), [] {});
  EXPECT_TRUE(absl::EndsWith(first.ReadAnswer(), "done"));
  first.Send(head + "\r\n" + body);
  Next()->Answer(Text("again"), [] {});
  EXPECT_TRUE(absl::EndsWith(first.ReadAnswer(), "again"));
}

TEST_F(ConnectionLimitsTest, TheLargestBodyFitsInAClientsPartOfASmallRoom) {
  options_.max_body_bytes = 60'000;
  options_.max_held_bytes = 1;
  options_.client_share = 0.5;
  Start();
  RawClient client(server_->port());
  client.Send("POST /a HTTP/1.1\r\nContent-Length: 60000\r\n\r\n" +
              std::string(60'000, 'x'));
  Next()->Answer(Text("done"), [] {});
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "done"));
  WaitUntil([this] { return server_->held_bytes() == 0; },
            "the room, while the connection goes on");
}

TEST_F(ConnectionLimitsTest, WithoutIdleTimeAConnectionHasOneRequest) {
  options_.idle_time = absl::ZeroDuration();
  Start();
  RawClient client(server_->port());
  client.Send(absl::StrCat(kGet, kGet));
  Next()->Answer(Text("only"), [] {});
  const std::string answer = client.ReadAll();
  EXPECT_TRUE(absl::StrContains(answer, "\r\nConnection: close\r\n"));
  EXPECT_TRUE(absl::EndsWith(answer, "\r\n\r\nonly")) << answer;
}

TEST_F(ConnectionLimitsTest, AnIdleConnectionEndsAfterItsTime) {
  options_.idle_time = absl::Milliseconds(50);
  options_.head_time = absl::Milliseconds(50);
  Start();
  RawClient client(server_->port());
  client.Send("GET /other HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "other"));
  EXPECT_EQ(client.ReadAll(), "");
}

TEST_F(ConnectionLimitsTest, AnAnswerMayTakeLongerThanAConnectionMayBeIdle) {
  options_.idle_time = options_.head_time = absl::Milliseconds(500);
  Start();
  RawClient client(server_->port());
  client.Send(kGet);
  auto exchange = Next();
  RawClient idle(server_->port());
  EXPECT_EQ(idle.ReadAll(), "") << "ended for its idle time";
  exchange->Answer(Text("late"), [] {});
  EXPECT_TRUE(absl::EndsWith(client.ReadAnswer(), "late"));
}

TEST_F(ConnectionLimitsTest, OneThatWaitsForItsAnswerIsNeverEndedForOthers) {
  options_.max_connections = 2;
  Start();
  RawClient first(server_->port()), second(server_->port());
  first.Send(kGet);
  second.Send(kGet);
  auto exchange = Next();
  auto other = Next();
  EXPECT_EQ(Other(), "");
  exchange->Answer(Text("done"), [] {});
  other->Answer(Text("done"), [] {});
  EXPECT_TRUE(absl::EndsWith(first.ReadAnswer(), "done"));
  EXPECT_TRUE(absl::EndsWith(second.ReadAnswer(), "done"));
  EXPECT_EQ(Other(), "other");
}

TEST_F(ConnectionLimitsTest, AClientThatCrashesMakesRoomBeforeItsAnswer) {
  options_.max_connections = 1;
  Start();
  RawClient client(server_->port());
  client.Send(kGet);
  auto exchange = Next();
  absl::Notification cancelled;
  exchange->OnCancel([&cancelled] { cancelled.Notify(); });
  client.Reset();
  WaitFor(cancelled, "the cancellation");
  EXPECT_EQ(Other(), "other");
}

TEST_F(ConnectionLimitsTest, TheOneThatIsIdleForTheLongestIsEndedForOthers) {
  options_.max_connections = 2;
  Start();
  const std::string get = "GET /other HTTP/1.1\r\n\r\n";
  RawClient first(server_->port()), second(server_->port());
  for (RawClient* client : {&first, &second, &first}) {
    client->Send(get);
    EXPECT_TRUE(absl::EndsWith(client->ReadAnswer(), "other"));
  }
  EXPECT_EQ(Other(), "other");
  first.Send(get);
  EXPECT_TRUE(absl::EndsWith(first.ReadAnswer(), "other"));
  EXPECT_EQ(second.ReadAll(), "");
}

}  // namespace
}  // namespace sfmamba::http
