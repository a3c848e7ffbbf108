#include "server/observability/trace_context.h"

#include "gtest/gtest.h"

namespace sfmamba::observability {
namespace {

TEST(TraceContextTest, ReadsTheTraceId) {
  EXPECT_EQ(
      TraceIdOf("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
      "4bf92f3577b34da6a3ce929d0e0e4736");
}

TEST(TraceContextTest, RefusesWhatIsNotOne) {
  for (const char* bad : {
           "",
           "00",
           "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
       }) {
    EXPECT_EQ(TraceIdOf(bad), "") << bad;
  }
}

TEST(TraceContextTest, NewIdsAreValidAndDiffer) {
  const std::string id = NewTraceId();
  EXPECT_EQ(TraceIdOf("00-" + id + "-00f067aa0ba902b7-00"), id);
  EXPECT_NE(NewTraceId(), id);
}

}  // namespace
}  // namespace sfmamba::observability
