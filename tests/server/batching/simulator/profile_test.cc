// Tests how the queue corrects a wrong batch profile, in virtual time.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/batching/simulator/scenarios.h"
#include "tests/server/batching/simulator/simulator.h"
#include "tests/server/batching/simulator/trace.h"

namespace sfmamba::batching {
namespace {

// Simulates a load of twice the capacity.
SimulationResult Overload(const Scenario& scenario) {
  const SimulationResult result = Simulate(
      scenario.options, TraceOf(scenario, Arrivals::kPoisson, /*load=*/2));
  EXPECT_THAT(result.errors, testing::IsEmpty());
  return result;
}

// If a model is measured while other programs run, all batches of several
// images may seem to take ten times as long.
TEST(ProfileTest, AProfileOfABusyMachineHealsInTenSeconds) {
  for (const double deadline_batches : {2, 10}) {
    for (const double slower : {1, 8}) {  // Up to 144 ms per image.
      Scenario scenario = CpuClassifier(deadline_batches * slower);
      SimulatedModel& model = scenario.options.models[0];
      model.cost = [cost = model.cost, slower](const BatchKey& key,
                                               int images) {
        return slower * cost(key, images);
      };
      scenario.capacity /= slower;
      scenario.options.measured_factor = 10;
      const SimulationResult result = Overload(scenario);
      EXPECT_LT(result.in_small, absl::Seconds(10))
          << deadline_batches << " batches of " << slower;
      EXPECT_GE(result.in_time / (scenario.capacity *
                                  absl::ToDoubleSeconds(scenario.length)),
                0.8)
          << deadline_batches << " batches of " << slower;
    }
  }
}

TEST(ProfileTest, TrialsOfLargerBatchesCostAPercent) {
  Scenario scenario = CpuClassifier(100);
  // Two images take much longer than two batches of one image.
  scenario.options.models[0].cost = [](const BatchKey&, int images) {
    return absl::Milliseconds(images == 1 ? 144 : 500 * images);
  };
  scenario.options.noise = scenario.options.outliers = 0;
  scenario.capacity = 1 / 0.144;
  scenario.length = absl::Minutes(20);
  const SimulationResult result = Overload(scenario);
  EXPECT_GE(result.in_small, 0.985 * result.busy);
  EXPECT_LT(result.in_small, result.busy) << "none was tried";
}

}  // namespace
}  // namespace sfmamba::batching
