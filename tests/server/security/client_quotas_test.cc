#include "server/security/client_quotas.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"

namespace sfmamba::security {
namespace {

class ClientQuotasTest : public testing::Test {
 protected:
  static Caller Named(const std::string& name, int max_items,
                      double items_per_second = 0, int burst = 0) {
    return {name, true, {max_items, items_per_second, burst}};
  }
  // Asks for `items` images. If they are refused, returns the time until a
  // retry. Otherwise returns nullopt.
  std::optional<absl::Duration> RefusedFor(const Caller& caller, int items) {
    auto hold = quotas_.Take(caller, items);
    if (hold.ok()) {
      hold->Release();
      return std::nullopt;
    }
    EXPECT_EQ(hold.status().code(), absl::StatusCode::kResourceExhausted);
    const server::ErrorDetail detail = server::GetErrorDetail(hold.status());
    EXPECT_EQ(detail.reason, "CLIENT_QUOTA");
    EXPECT_EQ(detail.quota_subject, caller.name);
    return detail.retry_after;
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  ClientQuotas quotas_{[this] { return now_; }};
};

TEST_F(ClientQuotasTest, CountsImagesUntilTheyEnd) {
  const Caller caller = Named("a", 4);
  auto first = quotas_.Take(caller, 3);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(RefusedFor(caller, 2).has_value());
  EXPECT_FALSE(RefusedFor(caller, 1).has_value());
  ClientQuotas::Hold one = first->Split(1);
  EXPECT_TRUE(RefusedFor(caller, 2).has_value());
  one.Release();
  EXPECT_FALSE(RefusedFor(caller, 2).has_value());
  first->Release();
  EXPECT_FALSE(RefusedFor(caller, 4).has_value());
  EXPECT_EQ(quotas_.clients(), 0u);
}

TEST_F(ClientQuotasTest, NoClientTakesFromAnother) {
  const auto a = quotas_.Take(Named("a", 4), 4);
  ASSERT_TRUE(a.ok());
  EXPECT_FALSE(RefusedFor(Named("b", 4), 4).has_value());
  EXPECT_TRUE(RefusedFor(Named("a", 4), 1).has_value());
}

TEST_F(ClientQuotasTest, MoreThanEverFitHaveNoHint) {
  EXPECT_EQ(RefusedFor(Named("a", 4), 5), absl::InfiniteDuration());
  const auto held = quotas_.Take(Named("a", 4), 4);
  EXPECT_LT(RefusedFor(Named("a", 4), 1), absl::Seconds(1));
}

TEST_F(ClientQuotasTest, BucketFillsAtItsRateUpToTheBurst) {
  const Caller caller = Named("a", 0, /*items_per_second=*/10, /*burst=*/20);
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(RefusedFor(caller, 1).has_value()) << i;
  }
  EXPECT_EQ(RefusedFor(caller, 1), absl::Milliseconds(100));
  EXPECT_EQ(RefusedFor(caller, 5), absl::Milliseconds(500));
  now_ += absl::Milliseconds(100);
  EXPECT_FALSE(RefusedFor(caller, 1).has_value());
  EXPECT_TRUE(RefusedFor(caller, 1).has_value());
  now_ += absl::Hours(1);
  EXPECT_FALSE(RefusedFor(caller, 20).has_value());
  EXPECT_TRUE(RefusedFor(caller, 1).has_value());
}

TEST_F(ClientQuotasTest, RequestLargerThanTheBurstIsPaidForAfterwards) {
  const Caller caller = Named("a", 0, /*items_per_second=*/10, /*burst=*/10);
  EXPECT_FALSE(RefusedFor(caller, 64).has_value());
  EXPECT_EQ(RefusedFor(caller, 1), absl::Milliseconds(5500));
  now_ += absl::Milliseconds(5500);
  EXPECT_FALSE(RefusedFor(caller, 1).has_value());
}

TEST_F(ClientQuotasTest, RefundedImagesDoNotCountForTheRate) {
  const Caller caller = Named("a", 0, /*items_per_second=*/1, /*burst=*/4);
  auto hold = quotas_.Take(caller, 4);
  ASSERT_TRUE(hold.ok());
  quotas_.Refund(*std::move(hold));
  EXPECT_EQ(quotas_.clients(), 0u);
  EXPECT_FALSE(RefusedFor(caller, 4).has_value());
  EXPECT_TRUE(RefusedFor(caller, 1).has_value());
}

TEST_F(ClientQuotasTest, WithoutQuotaNothingIsHeld) {
  const auto hold = quotas_.Take(Named("a", 0), 1 << 20);
  EXPECT_TRUE(hold.ok());
  EXPECT_EQ(quotas_.clients(), 0u);
}

TEST_F(ClientQuotasTest, ClientsThatHaveNothingAreForgotten) {
  for (int i = 0; i < 200'000; ++i) {
    now_ += absl::Milliseconds(1);
    const auto hold =
        quotas_.Take(Named(absl::StrCat("ipv4:", i), 0, 100, 1), 1);
    ASSERT_TRUE(hold.ok());
  }
  EXPECT_LT(quotas_.clients(), 4096u);
}

TEST_F(ClientQuotasTest, ClientsThatNeverEndFillNoMemory) {
  std::vector<ClientQuotas::Hold> holds;
  for (int i = 0; i < 100'000; ++i) {
    auto hold = quotas_.Take(Named(absl::StrCat(i), 1), 1);
    ASSERT_TRUE(hold.ok());
    holds.push_back(*std::move(hold));
  }
  EXPECT_LE(quotas_.clients(), 65'536u);
  EXPECT_TRUE(RefusedFor(Named("7", 1), 1).has_value());
}

TEST_F(ClientQuotasTest, QuotasHoldAgainOnceACrowdHasGone) {
  std::vector<ClientQuotas::Hold> crowd;
  for (int i = 0; i < 70'000; ++i) {
    auto hold = quotas_.Take(Named(absl::StrCat("crowd", i), 4, 1), 1);
    ASSERT_TRUE(hold.ok());
    crowd.push_back(*std::move(hold));
  }
  crowd.clear();
  // Many other clients follow one another. Each holds its image only for a
  // short time.
  for (int i = 0; i < 2'000; ++i) {
    now_ += absl::Milliseconds(1);
    EXPECT_FALSE(RefusedFor(Named(absl::StrCat("other", i), 4, 1), 1));
  }
  const auto last = quotas_.Take(Named("last", 1, 1), 1);
  EXPECT_TRUE(RefusedFor(Named("last", 1, 1), 1).has_value());
}

}  // namespace
}  // namespace sfmamba::security
