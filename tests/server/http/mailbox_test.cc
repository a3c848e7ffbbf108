#include "server/http/mailbox.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

class MailboxTest : public testing::Test {
 protected:
  MailboxTest() {
    Room::Hold hold(room_, "ipv4:10.0.0.1:1");
    EXPECT_TRUE(hold.Take(10));
    call_ = std::make_shared<Call>(7, std::move(hold));
    exchange_ = MakeExchange(call_, mailbox_, HttpRequest{"GET", "/a"});
  }

  std::shared_ptr<Room> room_ = std::make_shared<Room>(100, 1);
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::shared_ptr<Call> call_;
  std::unique_ptr<Exchange> exchange_;
  int sent_ = 0;
};

TEST_F(MailboxTest, BringsAnAnswerAndGivesTheBodysRoomBack) {
  EXPECT_EQ(exchange_->request().path, "/a");
  EXPECT_EQ(room_->held(), 10);
  HttpResponse response;
  response.status = 204;
  exchange_->Answer(std::move(response), [this] { ++sent_; });
  EXPECT_EQ(room_->held(), 0);
  exchange_ = nullptr;
  std::vector<Answered> answers = mailbox_->Take();
  ASSERT_EQ(answers.size(), 1);
  EXPECT_EQ(answers[0].call, call_);
  EXPECT_EQ(answers[0].call->connection(), 7);
  ASSERT_TRUE(answers[0].response.has_value());
  EXPECT_EQ(answers[0].response->status, 204);
  EXPECT_EQ(sent_, 0);
  EXPECT_TRUE(mailbox_->Take().empty());
}

TEST_F(MailboxTest, AnExchangeThatEndsUnansweredIsToldOf) {
  exchange_ = nullptr;
  std::vector<Answered> answers = mailbox_->Take();
  ASSERT_EQ(answers.size(), 1);
  EXPECT_FALSE(answers[0].response.has_value());
  EXPECT_EQ(room_->held(), 0);
}

TEST_F(MailboxTest, GivesAnswersUpOnceItIsClosed) {
  auto late = MakeExchange(call_, mailbox_, HttpRequest());
  exchange_->Answer(HttpResponse(), [this] { ++sent_; });
  mailbox_->Close();
  EXPECT_EQ(sent_, 1);
  late->Answer(HttpResponse(), [this] { ++sent_; });
  EXPECT_EQ(sent_, 2);
  MakeExchange(call_, mailbox_, HttpRequest()) = nullptr;
  EXPECT_TRUE(mailbox_->Take().empty());
}

TEST_F(MailboxTest, ACancellationIsToldOnce) {
  int first = 0, second = 0;
  exchange_->OnCancel([&first] { ++first; });
  EXPECT_EQ(first, 0);
  call_->Cancel();
  EXPECT_EQ(first, 1);
  exchange_->OnCancel([&second] { ++second; });
  EXPECT_EQ(second, 1);
  EXPECT_EQ(first, 1);
}

}  // namespace
}  // namespace sfmamba::http
