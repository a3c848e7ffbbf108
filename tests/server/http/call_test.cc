#include "server/http/call.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

class CallTest : public testing::Test {
 protected:
  CallTest() {
    Room::Hold hold = room_.MakeHold("ipv4:10.0.0.1");
    EXPECT_TRUE(hold.Resize(10));
    call_ = std::make_shared<Call>(
        std::move(hold), [this](std::shared_ptr<Call> call, Answered answered) {
          EXPECT_EQ(call, call_);
          answers_.push_back(std::move(answered));
        });
    exchange_ = Call::MakeExchange(call_, HttpRequest{"GET", "/a"});
  }

  Room room_{100, 1};
  std::vector<Answered> answers_;
  std::shared_ptr<Call> call_;
  std::unique_ptr<Exchange> exchange_;
  int sent_ = 0;
};

TEST_F(CallTest, PostsAnAnswerAndGivesTheBodysRoomBack) {
  EXPECT_EQ(exchange_->request().path, "/a");
  EXPECT_EQ(room_.held(), 10);
  HttpResponse response;
  response.status = 204;
  exchange_->Answer(std::move(response), [this] { ++sent_; });
  EXPECT_EQ(room_.held(), 0);
  exchange_ = nullptr;
  ASSERT_EQ(answers_.size(), 1);
  ASSERT_TRUE(answers_[0].response.has_value());
  EXPECT_EQ(answers_[0].response->status, 204);
  EXPECT_EQ(sent_, 0);
  answers_.clear();
  EXPECT_EQ(sent_, 1);
}

TEST_F(CallTest, AnExchangeThatEndsUnansweredIsPosted) {
  exchange_ = nullptr;
  ASSERT_EQ(answers_.size(), 1);
  EXPECT_FALSE(answers_[0].response.has_value());
  EXPECT_EQ(room_.held(), 0);
}

TEST_F(CallTest, ACancellationIsToldOnce) {
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
