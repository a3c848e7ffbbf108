#include "server/observability/trace_context.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::observability {
namespace {

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParent[] = "00f067aa0ba902b7";

std::string Value(absl::string_view version, absl::string_view flags) {
  return absl::StrCat(version, "-", kTrace, "-", kParent, "-", flags);
}

TEST(TraceContextTest, ReadsIdsAndFlags) {
  const std::optional<TraceContext> context =
      ParseTraceparent(Value("00", "01"));
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(Hex(context->trace), kTrace);
  EXPECT_EQ(Hex(context->parent), kParent);
  EXPECT_TRUE(context->sampled);
  EXPECT_FALSE(ParseTraceparent(Value("00", "00"))->sampled);
  // Other flags do not affect sampling.
  EXPECT_TRUE(ParseTraceparent(Value("00", "ff"))->sampled);
  EXPECT_FALSE(ParseTraceparent(Value("00", "fe"))->sampled);
}

TEST(TraceContextTest, ReadsWhatLaterVersionsShareWithIt) {
  for (const std::string& value :
       {Value("01", "01"), Value("cc", "01-what-comes-then"),
        Value("fe", "01-")}) {
    const std::optional<TraceContext> context = ParseTraceparent(value);
    ASSERT_TRUE(context.has_value()) << value;
    EXPECT_EQ(Hex(context->trace), kTrace);
    EXPECT_TRUE(context->sampled);
  }
  EXPECT_FALSE(ParseTraceparent(Value("01", "011")).has_value());
  EXPECT_FALSE(ParseTraceparent(Value("01", "01.x")).has_value());
}

TEST(TraceContextTest, RefusesWhatIsNotOne) {
  for (const char* bad : {
           "",
           "00",
           "00-ab-cd-01",
           "0-4bf92f3577b34da6a3ce929d0e0e47366-00f067aa0ba902b7-01",
           "0g-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "FE-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e47 6-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902-7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
           "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
       }) {
    EXPECT_FALSE(ParseTraceparent(bad).has_value()) << bad;
  }
  EXPECT_FALSE(ParseTraceparent(std::string(16 << 10, '0')).has_value());
  EXPECT_FALSE(ParseTraceparent(std::string(55, '\0')).has_value());
}

TEST(TraceContextTest, WithoutOneATraceBegins) {
  EXPECT_EQ(Hex(TraceContextOf(Value("00", "01")).trace), kTrace);
  const TraceContext context = TraceContextOf("00-bad");
  EXPECT_NE(context.trace, TraceId());
  EXPECT_EQ(context.parent, 0);
  EXPECT_FALSE(context.sampled);
}

TEST(TraceContextTest, NewIdsAreValidAndDiffer) {
  const TraceId id = NewTraceId();
  const std::optional<TraceContext> context = ParseTraceparent(
      absl::StrCat("00-", Hex(id), "-", Hex(NewSpanId()), "-00"));
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace, id);
  EXPECT_NE(NewTraceId(), id);
  EXPECT_NE(NewSpanId(), NewSpanId());
}

TEST(TraceContextTest, HexHasAllItsDigits) {
  EXPECT_EQ(Hex(TraceId{1, 2}), "00000000000000010000000000000002");
  EXPECT_EQ(Hex(SpanId{10}), "000000000000000a");
}

TEST(TracestateTest, IsKeptAsItCame) {
  for (const char* state :
       {"", "rojo=00f067aa0ba902b7", "rojo=1,congo=t61rcWkgMzE",
        "tenant@vendor=a b", "0a_-*/=~!"}) {
    EXPECT_EQ(KeptTracestate(state), state);
  }
  EXPECT_EQ(KeptTracestate(" a=1 ,\t,b=2"), "a=1,b=2");
}

TEST(TracestateTest, WhatIsNotInFormIsDropped) {
  for (const std::string& state :
       {std::string("a"), std::string("=1"), std::string("a="),
        std::string("A=1"), std::string("a=1,b"), std::string("a=\xc3\xa9"),
        std::string("a=1\x7f"), std::string("a=b=c"), std::string("@a=1"),
        std::string("a=\0b", 4), "a=" + std::string(257, 'x'),
        std::string(257, 'k') + "=1"}) {
    EXPECT_EQ(KeptTracestate(state), "") << state;
  }
}

TEST(TracestateTest, TheLongestIsKept) {
  for (const std::string& member :
       {"a=" + std::string(256, 'x'), std::string(256, 'k') + "=1"}) {
    EXPECT_EQ(KeptTracestate(member), member);
  }
  std::string state = "a=" + std::string(98, 'x');
  for (int i = 1; i < 5; ++i)
    absl::StrAppend(&state, ",", state.substr(0, 100));
  absl::StrAppend(&state, ",b=12345");
  ASSERT_EQ(state.size(), 512);
  EXPECT_EQ(KeptTracestate(state), state);
  EXPECT_EQ(KeptTracestate(state + "6"), state.substr(0, 504));
}

TEST(TracestateTest, OfALongOneTheLargeAndThenTheLastMembersGo) {
  const std::string large = "large=" + std::string(200, 'x');
  const std::string small = "small=" + std::string(94, 'x');
  EXPECT_EQ(KeptTracestate(absl::StrCat(large, ",", small)),
            absl::StrCat(large, ",", small));
  EXPECT_EQ(
      KeptTracestate(absl::StrCat(small, ",", large, ",", large, ",", small)),
      absl::StrCat(small, ",", large, ",", small));
  std::string many = small;
  for (int i = 0; i < 8; ++i) absl::StrAppend(&many, ",", small);
  const std::string kept = KeptTracestate(many);
  EXPECT_EQ(kept.size(), 5 * 100 + 4);
  EXPECT_EQ(many.substr(0, kept.size()), kept);
}

TEST(TracestateTest, NoMoreMembersGoThanMust) {
  // This member has 129 bytes.
  const std::string large = "l=" + std::string(127, 'x');
  const std::string small = "s=" + std::string(126, 'x');
  std::string kept = small;
  for (int i = 0; i < 3; ++i) absl::StrAppend(&kept, ",", small.substr(0, 127));
  ASSERT_EQ(kept.size(), 512);
  EXPECT_EQ(KeptTracestate(absl::StrCat(kept, ",", large)), kept);
  EXPECT_EQ(KeptTracestate(absl::StrCat(large, ",", kept)), kept);
  // With one more byte, the last member must be dropped too.
  EXPECT_EQ(KeptTracestate(absl::StrCat(large, ",", kept, "x")),
            kept.substr(0, 384));
  std::string many = "a=" + std::string(18, 'x');
  for (int i = 1; i < 32; ++i) absl::StrAppend(&many, ",", many.substr(0, 20));
  EXPECT_EQ(KeptTracestate(many).size(), 24 * 20 + 23);
}

TEST(TracestateTest, OfManyMembersNoneIsKept) {
  std::string state = "a=1";
  for (int i = 1; i < 32; ++i) absl::StrAppend(&state, ",a=1");
  EXPECT_EQ(KeptTracestate(state), state);
  EXPECT_EQ(KeptTracestate(state + ",a=1"), "");
  while (state.size() < 16 << 10) state += ",a=1";
  EXPECT_EQ(KeptTracestate(state), "");
}

}  // namespace
}  // namespace sfmamba::observability
