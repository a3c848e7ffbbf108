#include "client/bench/trace.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMixed[] =
    "time\tmethod\tpictures\tdeadline\tpriority\tclass\n"
    "# Two callers.\n"
    "\n"
    "30ms\tclassify/m\ta.jpg\t200ms\thigh\n"
    "0\tdetect\tb b.jpg,c.jpg\t-\t-\tlarge\r\n"
    "10ms\tclassify/models/m/versions/1\ttensor:fp32\n"
    "10ms\tclassify/m\ta.jpg\t200ms\thigh";

TEST(ParseTraceTest, ReadsRequestsAndSortsArrivals) {
  const absl::StatusOr<Trace> trace = ParseTrace(kMixed);
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->requests.size(), 3);
  const TraceRequest& high = trace->requests[0];
  EXPECT_EQ(high.method, "classify");
  EXPECT_EQ(high.model, "m");
  EXPECT_THAT(high.pictures, ElementsAre("a.jpg"));
  EXPECT_EQ(high.deadline, absl::Milliseconds(200));
  EXPECT_EQ(high.priority, v1::RequestOptions::HIGH);
  EXPECT_EQ(high.class_name, "classify/m high");
  const TraceRequest& large = trace->requests[1];
  EXPECT_EQ(large.method, "detect");
  EXPECT_EQ(large.model, "");
  EXPECT_THAT(large.pictures, ElementsAre("b b.jpg", "c.jpg"));
  EXPECT_EQ(large.deadline, absl::nullopt);
  EXPECT_EQ(large.priority, v1::RequestOptions::PRIORITY_UNSPECIFIED);
  EXPECT_EQ(large.class_name, "large");
  EXPECT_EQ(trace->requests[2].model, "models/m/versions/1");
  EXPECT_EQ(trace->requests[2].class_name, "classify/models/m/versions/1");

  std::vector<std::pair<int64_t, int>> arrivals;
  for (const Trace::Arrival& arrival : trace->arrivals) {
    arrivals.emplace_back(absl::ToInt64Milliseconds(arrival.at),
                          arrival.request);
  }
  EXPECT_THAT(arrivals,
              ElementsAre(std::make_pair(0, 1), std::make_pair(10, 2),
                          std::make_pair(10, 0), std::make_pair(30, 0)));
}

TEST(ParseTraceTest, WhatIsFormattedReadsTheSame) {
  const Trace trace = *ParseTrace(kMixed);
  const std::string text = FormatTrace(trace);
  EXPECT_THAT(text, HasSubstr("30000000ns\tclassify/m\ta.jpg\t200ms\thigh\t"
                              "classify/m high\n"));
  const absl::StatusOr<Trace> again = ParseTrace(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(FormatTrace(*again), text);
  EXPECT_EQ(again->arrivals.size(), trace.arrivals.size());
}

TEST(ParseTraceTest, NothingIsATraceWithoutArrivals) {
  EXPECT_THAT(ParseTrace("# nothing\n")->arrivals, IsEmpty());
}

struct BadLine {
  const char* line;
  const char* complaint;
};

class BadTraceTest : public testing::TestWithParam<BadLine> {};

TEST_P(BadTraceTest, NamesTheLineAndTheField) {
  const absl::StatusOr<Trace> trace =
      ParseTrace(absl::StrCat("0\tclassify\ta.jpg\n", GetParam().line));
  ASSERT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(trace.status().message(),
            absl::StrCat("line 2: expected ", GetParam().complaint));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, BadTraceTest,
    testing::Values(
        BadLine{"1s",
                "a time and 2 to 5 fields more, tabs between them, got ''"},
        BadLine{"1s classify a.jpg",
                "a time such as 1.5s or 20ms, got '1s classify a.jpg'"},
        BadLine{"1s\tclassify\ta\t1s\tlow\tc\tx",
                "a time and 2 to 5 fields more, tabs between them, got "
                "'classify\ta\t1s\tlow\tc\tx'"},
        BadLine{"-1s\tclassify\ta.jpg",
                "a time such as 1.5s or 20ms, got '-1s'"},
        BadLine{"inf\tclassify\ta.jpg",
                "a time such as 1.5s or 20ms, got 'inf'"},
        BadLine{"5\tclassify\ta.jpg", "a time such as 1.5s or 20ms, got '5'"},
        BadLine{"1s\tguess/m\ta.jpg",
                "classify, detect or segment, and perhaps /MODEL, got "
                "'guess/m'"},
        BadLine{"1s\tclassify\ta.jpg,,b.jpg",
                "pictures with commas between them, got 'a.jpg,,b.jpg'"},
        BadLine{"1s\tclassify\t-",
                "pictures with commas between them, got '-'"},
        BadLine{"1s\tclassify\ttensor:fp64",
                "tensor:fp32 or tensor:uint8, got 'tensor:fp64'"},
        BadLine{"1s\tclassify\ta.jpg\t0s",
                "a deadline such as 200ms, or -, got '0s'"},
        BadLine{"1s\tclassify\ta.jpg\t1s\turgent",
                "high, normal, low or -, got 'urgent'"}));

}  // namespace
}  // namespace sfmamba::client
