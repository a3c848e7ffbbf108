#include "tests/server/batching/simulator/optimum.h"

#include <algorithm>
#include <random>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

TEST(OptimumTest, CountsWhatFits) {
  SimulatedModel model;
  model.options.max_batch_size = 2;
  model.cost = [](const BatchKey&, int images) {
    return absl::Milliseconds(10 * images);
  };
  const auto request = [](int at, int deadline, int side = 224) {
    SimulatedRequest request;
    request.at = absl::Milliseconds(at);
    request.deadline = absl::Milliseconds(deadline);
    request.key = {side, side};
    return request;
  };
  EXPECT_EQ(Optimum(model, {request(0, 9)}), 0);
  EXPECT_EQ(Optimum(model, {request(0, 10), request(0, 10)}), 1);
  EXPECT_EQ(Optimum(model, {request(0, 20), request(0, 20)}), 2);
  EXPECT_EQ(Optimum(model, {request(0, 15), request(0, 15, 64)}), 1);
  // The optimum includes waiting for a later arrival.
  EXPECT_EQ(Optimum(model, {request(0, 30), request(5, 10)}), 2);
}

// Compares the fast search with the exhaustive search, for few requests.
TEST(OptimumTest, OfOneSizeIsThatOfEveryWayToBatch) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> part(0, 1);
  int found = 0;
  for (int trial = 0; trial < 300; ++trial) {
    SimulatedModel model;
    model.options.max_batch_size = 1 + trial % 4;
    const double fixed = 20 * part(random);
    const double per_image = 2 + 10 * part(random);
    model.cost = [=](const BatchKey&, int images) {
      return absl::Milliseconds(fixed + per_image * images);
    };
    const double span = 20 + 130 * part(random);
    const absl::Duration deadline =
        (1 + 2 * part(random)) * model.cost({}, 1 + trial % 4);
    std::vector<SimulatedRequest> trace(7);
    for (SimulatedRequest& request : trace) {
      request.key = {224, 224};
      request.at = absl::Milliseconds(static_cast<int>(span * part(random)));
      request.deadline = deadline;
    }
    std::sort(trace.begin(), trace.end(),
              [](const SimulatedRequest& a, const SimulatedRequest& b) {
                return a.at < b.at;
              });
    const int optimum = Optimum(model, trace);
    ASSERT_EQ(OptimumOfOneSize(model, trace), optimum) << trial;
    found += optimum;
  }
  EXPECT_GT(found, 300 * 2);
  EXPECT_LT(found, 300 * 6.5) << "not every request fits";
}

TEST(OptimumTest, OfOneSizeOfNoRequestsIsNone) {
  SimulatedModel model;
  model.cost = [](const BatchKey&, int) { return absl::Milliseconds(1); };
  EXPECT_EQ(OptimumOfOneSize(model, {}), 0);
}

}  // namespace
}  // namespace sfmamba::batching
