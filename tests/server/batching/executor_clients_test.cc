// Tests how an executor limits what one client may occupy, so that other
// clients can send requests too. The limits apply to the places in the queue
// and to the device time until a request's deadline.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "server/batching/admission.h"
#include "server/batching/executor.h"
#include "server/errors/error.h"
#include "tests/server/batching/executor_fixture.h"

namespace sfmamba::batching {
namespace {

class ExecutorClientsTest : public ExecutorTest {
 protected:
  ExecutorClientsTest() {
    options_.batch.mode = BatchMode::kLatency;
    options_.batch.client_share = 0.8;
    options_.batch.max_queue_items = 1000;
  }

  // Makes an executor that knows that a batch of one image takes a second. No
  // task is submitted, so admitted requests keep their room.
  void Make() {
    BatchTime time;
    time.key.height = time.key.width = 4;
    time.key.type = ImageType::kFloat32;
    time.images = 1;
    time.median = time.p95 = absl::Seconds(1);
    options_.times = {time};
    executor_ = MakeExecutor(1);
    ASSERT_EQ(executor_->WaitUntilPrepared(), absl::OkStatus());
    request_.key = time.key;
  }
  // Returns true if request_ is admitted for the client with a deadline of
  // `time_` from now.
  bool Ask(const std::string& client) {
    request_.client = client;
    request_.deadline = base::SteadyNow() + time_;
    auto room = executor_->Admit(request_, 0);
    reason_ = server::GetErrorDetail(room.status()).reason;
    if (room.ok()) held_.push_back(*std::move(room));
    return room.ok();
  }
  int AskUntilRefused(const std::string& client) {
    int admitted = 0;
    while (Ask(client)) ++admitted;
    return admitted;
  }

  absl::Duration time_ = absl::Seconds(60);
  std::unique_ptr<Executor> executor_;
  AdmissionRequest request_;
  std::string reason_;  // The reason of the last refusal.
  std::vector<Reservation> held_;
};

TEST_F(ExecutorClientsTest, WhoIsAloneFillsTheTimeBeforeItsDeadline) {
  Make();
  EXPECT_GE(AskUntilRefused("a"), 58);
  EXPECT_EQ(reason_, "PREDICTED_DEADLINE_MISS");
}

TEST_F(ExecutorClientsTest, BesideOthersTheLastOfTheTimeStaysFree) {
  Make();
  ASSERT_TRUE(Ask("b"));
  const int admitted = AskUntilRefused("a");
  EXPECT_EQ(reason_, "CLIENT_QUOTA");
  EXPECT_GE(admitted, 45);
  EXPECT_LE(admitted, 50);
  EXPECT_TRUE(Ask("b"));
  EXPECT_TRUE(Ask("c"));
}

// The admitted images of client "a" take much longer than the 5 s until the
// deadlines of the next requests.
TEST_F(ExecutorClientsTest, WhoHoldsLittleWaitsForItsOwnTurnsOnly) {
  Make();
  ASSERT_TRUE(Ask("b"));
  held_.clear();
  AskUntilRefused("a");
  time_ = absl::Seconds(5);
  EXPECT_FALSE(Ask("a"));
  EXPECT_EQ(reason_, "PREDICTED_DEADLINE_MISS");
  EXPECT_TRUE(Ask("b")) << reason_;
}

TEST_F(ExecutorClientsTest, GreedyClientsGetEqualParts) {
  Make();
  int admitted[2] = {0, 0};
  for (bool any = true; any;) {
    any = false;
    for (int i : {0, 1}) {
      if (!Ask(i == 0 ? "a" : "b")) continue;
      ++admitted[i];
      any = true;
    }
  }
  EXPECT_NEAR(admitted[0], 60 * 4 / 9, 2);
  EXPECT_NEAR(admitted[0], admitted[1], 1);
}

TEST_F(ExecutorClientsTest, WithoutADeadlineAClientFillsItsPartOfThePlaces) {
  Make();
  time_ = absl::InfiniteDuration();
  EXPECT_EQ(AskUntilRefused("a"), 800);
  EXPECT_EQ(reason_, "CLIENT_QUOTA");
  EXPECT_TRUE(Ask("b"));
}

TEST_F(ExecutorClientsTest, WithoutADeadlineTheLastOfADrainStaysFree) {
  options_.drain_timeout = absl::Seconds(60);
  Make();
  ASSERT_TRUE(Ask("b"));
  time_ = absl::InfiniteDuration();
  const int admitted = AskUntilRefused("a");
  EXPECT_EQ(reason_, "CLIENT_QUOTA");
  EXPECT_GE(admitted, 45);
  EXPECT_LE(admitted, 50);
  EXPECT_TRUE(Ask("b"));
  EXPECT_TRUE(Ask("c"));
}

TEST_F(ExecutorClientsTest, WhoHoldsLittleIsAdmittedBesideAFullDrain) {
  options_.drain_timeout = absl::Seconds(60);
  Make();
  time_ = absl::InfiniteDuration();
  AskUntilRefused("a");
  EXPECT_EQ(reason_, "QUEUE_FULL");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Ask("b")) << i << " " << reason_;
  EXPECT_FALSE(Ask("a"));
}

TEST_F(ExecutorClientsTest, ARequestThatFitsTheEmptyQueueIsAdmitted) {
  Make();
  ASSERT_TRUE(Ask("b"));
  held_.clear();
  request_.images = 57;
  EXPECT_TRUE(Ask("a")) << reason_;
}

TEST_F(ExecutorClientsTest, AShareOfOneIsNoLimit) {
  options_.batch.client_share = 1;
  Make();
  ASSERT_TRUE(Ask("b"));
  AskUntilRefused("a");
  EXPECT_EQ(reason_, "PREDICTED_DEADLINE_MISS");
}

TEST_F(ExecutorClientsTest, WhoseImagesAreUnknownHasNoLimit) {
  Make();
  ASSERT_TRUE(Ask("b"));
  AskUntilRefused("");
  EXPECT_EQ(reason_, "PREDICTED_DEADLINE_MISS");
}

}  // namespace
}  // namespace sfmamba::batching
