// Tests how an executor is prepared while other models serve requests, and how
// it runs its probes.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/batching/device_turns.h"
#include "server/batching/executor.h"
#include "server/threads/worker.h"
#include "tests/server/batching/executor_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {
namespace {

class ExecutorBackgroundTest : public ExecutorTest {
 protected:
  // Returns a probe that expects the answer 7.
  static Executor::Probe MakeProbe() {
    Executor::Probe probe;
    probe.height = probe.width = 4;
    probe.pixels.assign(48, 7);
    probe.check = [](const model::Result& result) {
      return std::get<model::Classification>(result).logits[0] == 7
                 ? absl::OkStatus()
                 : absl::FailedPreconditionError("not the same");
    };
    return probe;
  }

  server::Worker background_{server::Worker::Options{"background"}};
};

TEST_F(ExecutorBackgroundTest, WaitsForItsTurnsBehindOthers) {
  DeviceTurns& device = devices_->Get("fake", /*at_once=*/1);
  const auto other = device.Join();
  std::optional<DeviceTurns::Turn> turn(
      other->Take(server::Priority::kNormal, absl::Seconds(1)));
  FakeModel::Options model;
  model.one_device = true;
  options_.background = &background_;
  options_.profile_budget = absl::Nanoseconds(1);
  const auto executor = MakeExecutor(6, model);
  WaitUntil([&device] { return device.waiting() == 1; }, "a wish for a turn");
  EXPECT_TRUE(sizes().empty());
  absl::Notification urgent;
  std::thread waiter([&] {
    const auto member = device.Join();
    const auto taken = member->Take(server::Priority::kHigh, absl::Seconds(1));
    EXPECT_TRUE(sizes().empty()) << "the urgent goes first";
    urgent.Notify();
  });
  WaitUntil([&device] { return device.waiting() == 2; }, "another wish");
  turn.reset();
  WaitFor(urgent, "the urgent turn");
  Join(waiter, "the urgent turn's end");
  EXPECT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(sizes(), std::vector<int>({1, 1}));
}

TEST_F(ExecutorBackgroundTest, MeasuresNoLongBatches) {
  options_.background = &background_;
  options_.profile_budget = absl::Hours(1);
  FakeModel::Options model = Before(
      [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); });
  model.one_device = true;
  const auto executor = MakeExecutor(32, model);
  EXPECT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(sizes(), std::vector<int>({1, 1})) << "two would take 60 ms";
}

TEST_F(ExecutorBackgroundTest, OnACpuProbesRunBesideTheBatchesOfOthers) {
  DeviceTurns& device = devices_->Get("cpu", /*at_once=*/1);
  const auto other = device.Join();
  std::optional<DeviceTurns::Turn> turn(
      other->Take(server::Priority::kNormal, absl::Seconds(1)));
  std::vector<std::thread::id> threads;
  FakeModel::Options model =
      Before([&threads] { threads.push_back(std::this_thread::get_id()); });
  model.one_device = true;
  model.device = "cpu";
  options_.background = &background_;
  options_.probes = {MakeProbe(), MakeProbe()};
  options_.times = {{BatchKey(), 1}};  // No batch is measured.
  const auto executor = MakeExecutor(6, model);
  EXPECT_EQ(executor->WaitUntilPrepared(), absl::OkStatus())
      << "it waits for nobody's turn";
  std::thread::id low;
  background_.Run([&low] { low = std::this_thread::get_id(); });
  EXPECT_EQ(threads, std::vector<std::thread::id>({low, low}));

  options_.probes[1].pixels.assign(48, 8);
  EXPECT_EQ(MakeExecutor(6, model)->WaitUntilPrepared().message(),
            "not the same");
  model.make_context = absl::ResourceExhaustedError("no memory");
  EXPECT_EQ(MakeExecutor(6, model)->WaitUntilPrepared().message(), "no memory");
}

TEST_F(ExecutorBackgroundTest, ElsewhereProbesWaitForTheirTurns) {
  DeviceTurns& device = devices_->Get("fake", /*at_once=*/1);
  const auto other = device.Join();
  std::optional<DeviceTurns::Turn> turn(
      other->Take(server::Priority::kNormal, absl::Seconds(1)));
  FakeModel::Options model;
  model.one_device = true;
  options_.background = &background_;
  options_.probes = {MakeProbe()};
  options_.times = {{BatchKey(), 1}};
  const auto executor = MakeExecutor(6, model);
  WaitUntil([&device] { return device.waiting() == 1; }, "a wish for a turn");
  EXPECT_TRUE(sizes().empty());
  turn.reset();
  EXPECT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(sizes(), std::vector<int>({1}));
}

TEST_F(ExecutorBackgroundTest, ProbesAreRunAndChecked) {
  Executor::Probe probe = MakeProbe();
  std::string checked;
  probe.check = [&checked](const model::Result& result) {
    checked += std::to_string(
        static_cast<int>(std::get<model::Classification>(result).logits[0]));
    return checked.size() < 2 ? absl::OkStatus()
                              : absl::FailedPreconditionError("not the same");
  };
  options_.probes = {probe};
  EXPECT_EQ(MakeExecutor(4)->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(checked, "7");
  options_.probes = {probe, probe};
  checked.clear();
  EXPECT_EQ(MakeExecutor(4)->WaitUntilPrepared().message(), "not the same");
  probe.height = 1;  // The model rejects this height.
  options_.probes = {probe};
  EXPECT_FALSE(MakeExecutor(4)->WaitUntilPrepared().ok());
}

}  // namespace
}  // namespace sfmamba::batching
