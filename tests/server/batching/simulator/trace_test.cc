#include "tests/server/batching/simulator/trace.h"

#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

constexpr Arrivals kAll[] = {Arrivals::kPoisson, Arrivals::kBursts,
                             Arrivals::kPulses, Arrivals::kWaves,
                             Arrivals::kDiurnal};

std::vector<SimulatedRequest> Make(Arrivals arrivals, uint32_t seed = 1) {
  return MakeTrace(arrivals, /*rate=*/200, absl::Seconds(100), {RequestKind()},
                   seed, /*period=*/absl::Milliseconds(160));
}

TEST(TraceTest, ArrivesInOrderAtTheRate) {
  for (const Arrivals arrivals : kAll) {
    const std::vector<SimulatedRequest> trace = Make(arrivals);
    EXPECT_NEAR(trace.size(), 200 * 100, 0.04 * 200 * 100)
        << static_cast<int>(arrivals);
    for (size_t i = 1; i < trace.size(); ++i) {
      ASSERT_LE(trace[i - 1].at, trace[i].at);
    }
  }
}

TEST(TraceTest, EqualSeedsGiveEqualTraces) {
  EXPECT_EQ(Make(Arrivals::kPulses)[50].at, Make(Arrivals::kPulses)[50].at);
  EXPECT_NE(Make(Arrivals::kPulses)[50].at, Make(Arrivals::kPulses, 2)[50].at);
}

TEST(TraceTest, PulsesFillTheFirstQuarterOfEachPeriod) {
  int first_half = 0;
  const std::vector<SimulatedRequest> trace = Make(Arrivals::kPulses);
  for (const SimulatedRequest& request : trace) {
    const absl::Duration into =
        request.at - absl::Floor(request.at, absl::Milliseconds(160));
    ASSERT_LT(into, absl::Milliseconds(40));
    first_half += into < absl::Milliseconds(20);
  }
  EXPECT_NEAR(first_half, trace.size() / 2, 0.03 * trace.size());
}

}  // namespace
}  // namespace sfmamba::batching
