#include "server/rpc/load_reports.h"

#include <cstring>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace sfmamba::rpc {
namespace {

// Returns the doubles in a serialized message by field number.
std::map<int, double> Doubles(const std::string& message) {
  std::map<int, double> doubles;
  EXPECT_EQ(message.size() % 9, 0);
  for (size_t i = 0; i + 9 <= message.size(); i += 9) {
    // Expects the wire type of a fixed 64-bit value.
    EXPECT_EQ(message[i] & 7, 1);
    std::memcpy(&doubles[message[i] >> 3], &message[i + 1], 8);
  }
  return doubles;
}

TEST(LoadReportsTest, TheFieldsAreThoseOfOrca) {
  const std::map<int, double> report =
      Doubles(SerializeLoadReport({0.75, 120.5, 2}));
  EXPECT_EQ(report, (std::map<int, double>{{6, 120.5}, {7, 2}, {9, 0.75}}));
  EXPECT_EQ(SerializeLoadReport({}), "");
}

TEST(LoadReportsTest, TheUtilizationIsTheBacklogOverItsTarget) {
  LoadReports reports([] { return LoadReports::kTargetBacklog / 4; },
                      [] { return absl::UnixEpoch(); });
  EXPECT_EQ(Doubles(reports.CallEnded(absl::OkStatus())).at(9), 0.25);
}

TEST(LoadReportsTest, ErrorsCountUnlessTheCallerMadeThem) {
  LoadReports reports([] { return absl::ZeroDuration(); },
                      [] { return absl::UnixEpoch(); });
  const std::string first = reports.CallEnded(absl::OkStatus());
  EXPECT_EQ(reports.CallEnded(absl::InvalidArgumentError("")), first);
  EXPECT_EQ(reports.CallEnded(absl::CancelledError("")), first);
  const auto after =
      Doubles(reports.CallEnded(absl::ResourceExhaustedError("")));
  EXPECT_EQ(after.at(6), Doubles(first).at(6));
  EXPECT_GT(after.at(7), 0);
}

}  // namespace
}  // namespace sfmamba::rpc
