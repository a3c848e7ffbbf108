#include "server/batching/reservation.h"

#include <limits>
#include <utility>

#include "gtest/gtest.h"
#include "server/errors/error.h"

namespace sfmamba::batching {
namespace {

TEST(QueueRoomTest, RefusesTooManyItems) {
  QueueRoom room({3, 1000});
  const auto held = room.Take(2, 0);
  ASSERT_TRUE(held.ok());
  EXPECT_TRUE(room.Take(1, 0).ok());
  const auto refused = room.Take(2, 0);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server::GetErrorDetail(refused.status()).reason, "QUEUE_FULL");
  EXPECT_EQ(server::GetMetadata("queue", refused.status()), "batch");
  EXPECT_EQ(server::GetErrorDetail(refused.status()).retry_after,
            server::kRetryAfter);
}

TEST(QueueRoomTest, RefusesTooManyBytes) {
  QueueRoom room({10, 1000});
  const auto held = room.Take(1, 600);
  ASSERT_TRUE(held.ok());
  EXPECT_FALSE(room.Take(1, 401).ok());
  EXPECT_FALSE(room.Take(1, std::numeric_limits<int64_t>::max()).ok());
  EXPECT_TRUE(room.Take(1, 400).ok());
}

TEST(QueueRoomTest, TakesAllOrNothing) {
  QueueRoom room({3, 1000});
  EXPECT_FALSE(room.Take(3, 1001).ok());
  EXPECT_FALSE(room.Take(4, 1000).ok());
  EXPECT_TRUE(room.Take(3, 1000).ok());
}

TEST(QueueRoomTest, OtherLimitsHoldForWhatComesThen) {
  QueueRoom room({3, 1000});
  Reservation held = *room.Take(3, 900);
  room.SetLimits({1, 500});
  EXPECT_EQ(room.limits().items, 1);
  EXPECT_EQ(room.limits().bytes, 500);
  EXPECT_EQ(room.items(), 3) << "what waits stays";
  Reservation rest = held.Split(1, 100);
  held.Release();
  EXPECT_FALSE(room.Take(1, 0).ok());
  rest.Release();
  EXPECT_FALSE(room.Take(1, 501).ok());
  EXPECT_TRUE(room.Take(1, 500).ok());
  room.SetLimits({4, 2000});
  EXPECT_TRUE(room.Take(4, 2000).ok());
}

TEST(QueueRoomTest, AClientLeavesRoomForOthers) {
  QueueRoom room({10, 1000}, "decode", 0.8);
  Reservation held = *room.Take(6, 0, "ipv4:10.0.0.7");
  const Reservation moved = held.Split(2, 0);
  held.Release();
  EXPECT_EQ(room.clients().HeldBy("ipv4:10.0.0.7"), 2);
  const Reservation more = *room.Take(6, 0, "ipv4:10.0.0.7");
  const auto refused = room.Take(1, 0, "ipv4:10.0.0.7");
  const server::ErrorDetail detail = server::GetErrorDetail(refused.status());
  EXPECT_EQ(detail.reason, "CLIENT_QUOTA");
  EXPECT_EQ(detail.quota_subject, "ipv4:10.0.0.7");
  EXPECT_EQ(detail.retry_after, server::kRetryAfter);
  EXPECT_EQ(server::GetMetadata("what", refused.status()),
            "the places of the decode queue");
  EXPECT_TRUE(room.Take(1, 0, "ipv4:10.0.0.8").ok());
  EXPECT_TRUE(room.Take(1, 0).ok()) << "nobody's";
}

TEST(QueueRoomTest, AClientLeavesBytesForOthers) {
  QueueRoom room({100, 1000}, "batch", /*client_share=*/0.8);
  EXPECT_EQ(room.most_bytes("a"), 800);
  EXPECT_EQ(room.most_bytes(""), 1000);
  {
    const auto alone = room.Take(1, 800, "a");
    EXPECT_TRUE(alone.ok()) << alone.status();
    EXPECT_FALSE(room.Take(1, 161, "b").ok()) << "as its only request";
    EXPECT_TRUE(room.Take(1, 160, "b").ok());
    EXPECT_TRUE(room.Take(1, 200).ok()) << "nobody's";
  }
  EXPECT_FALSE(room.Take(1, 801, "a").ok());
  const auto first = room.Take(1, 400, "a");
  auto second = room.Take(1, 400, "a");
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status refused = room.Take(1, 150, "a").status();
  EXPECT_EQ(server::GetErrorDetail(refused).reason, "CLIENT_QUOTA");
  EXPECT_NE(refused.message().find("bytes of the batch queue"),
            absl::string_view::npos)
      << refused;
  EXPECT_EQ(room.clients().HeldBy("a"), 2) << "the refused one's place is free";
  EXPECT_TRUE(room.Take(1, 160, "b").ok());
  { const auto done = *std::move(second); }
  EXPECT_TRUE(room.Take(1, 150, "a").ok());
}

TEST(QueueRoomTest, ErrorsSayWhichQueueIsFull) {
  QueueRoom room({1, 10}, "decode");
  const Reservation held = *room.Take(1, 0);
  EXPECT_EQ(room.Take(1, 0).status().message(),
            "the decode queue holds 1 of at most 1 images and 0 of at most 10 "
            "bytes; no room for 1 images of 0 bytes");
}

TEST(ReservationTest, PartsGoTheirOwnWay) {
  QueueRoom room({3, 30});
  Reservation whole = *room.Take(3, 30);
  Reservation part = whole.Split(1, 12);
  EXPECT_EQ(whole->items, 2);
  EXPECT_EQ(whole->bytes, 18);
  EXPECT_EQ(part->items, 1);
  EXPECT_EQ(part->bytes, 12);
  whole.Release();
  EXPECT_FALSE(room.Take(3, 0).ok());
  EXPECT_TRUE(room.Take(2, 18).ok());
  part.Release();
  EXPECT_TRUE(room.Take(3, 30).ok());
}

}  // namespace
}  // namespace sfmamba::batching
