#include "server/repository/reaper.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::repository {
namespace {

TEST(ReaperTest, FreesAModelOnItsOwnThreadWhenItsLastOwnerReleasesIt) {
  std::atomic<int> freed{0}, trimmed{0};
  std::thread::id thread;
  const LoadedModel* which = nullptr;
  Reaper reaper(
      [&](const LoadedModel* model) {
        which = model;
        thread = std::this_thread::get_id();
        ++freed;
      },
      [&] { ++trimmed; });
  std::shared_ptr<LoadedModel> model =
      reaper.Own(std::make_unique<LoadedModel>());
  const LoadedModel* const address = model.get();
  std::shared_ptr<LoadedModel> other_owner = model;
  model = nullptr;
  EXPECT_EQ(freed.load(), 0);
  other_owner = nullptr;
  WaitUntil([&] { return trimmed.load() == 1; }, "the end of the model");
  EXPECT_EQ(freed.load(), 1);
  EXPECT_EQ(which, address);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(ReaperTest, FreesWhatWaitsBeforeItsEnd) {
  std::atomic<int> freed{0};
  {
    Reaper reaper([&](const LoadedModel*) { ++freed; }, [] {});
    for (int i = 0; i < 10; ++i) reaper.Own(std::make_unique<LoadedModel>());
  }
  EXPECT_EQ(freed.load(), 10);
}

TEST(ReaperTest, AModelMayOutliveIt) {
  std::atomic<int> freed{0};
  auto reaper =
      std::make_unique<Reaper>([&](const LoadedModel*) { ++freed; }, [] {});
  std::shared_ptr<LoadedModel> model =
      reaper->Own(std::make_unique<LoadedModel>());
  const std::weak_ptr<LoadedModel> watch = model;
  reaper = nullptr;
  model = nullptr;
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(freed.load(), 0) << "nobody is told any more";
}

}  // namespace
}  // namespace sfmamba::repository
