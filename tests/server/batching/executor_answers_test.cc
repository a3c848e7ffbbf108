// Tests for which answers BatchInfo::thread_is_idle is true. It is true if no
// other batch is due when the image is answered.

#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/server/batching/executor_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {
namespace {

TEST_F(ExecutorTest, OnlyTheLastImageOfTheLastBatchFindsItsThreadIdle) {
  absl::Notification started, go;
  FakeModel::Options model;
  model.before_image = [&](float value) {
    if (value != 1) return;
    started.Notify();
    WaitFor(go, "the test's leave to go on");
  };
  // Two images take as long as one, so each batch waits for two images.
  for (const int images : {1, 2}) {
    const absl::Duration time = absl::Milliseconds(100);
    options_.times.push_back({{4, 4, ImageType::kFloat32}, images, time, time});
  }
  const auto executor = MakeExecutor(2, model);
  Answer answers[4];
  for (int i = 0; i < 2; ++i) executor->Submit(MakeTask(answers[i], i));
  WaitFor(started, "the first batch");
  for (int i = 2; i < 4; ++i) executor->Submit(MakeTask(answers[i], i));
  go.Notify();
  for (Answer& answer : answers) EXPECT_TRUE(answer.Wait().ok());
  EXPECT_EQ(sizes(), std::vector<int>({2, 2}));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(answers[i].info.thread_is_idle, i == 3) << i;
  }
}

}  // namespace
}  // namespace sfmamba::batching
