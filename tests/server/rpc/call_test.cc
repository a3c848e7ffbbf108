#include "server/rpc/call.h"

#include <utility>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "gtest/gtest.h"
#include "tests/server/security/token_texts.h"

namespace sfmamba::rpc {
namespace {

security::Tokens SomeTokens() {
  auto tokens = security::Tokens::Parse(
      security::ClientText("camera", "one", "INFER"), {});
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  return *std::move(tokens);
}

// R5.
TEST(CallTest, WithoutAGateEverybodyMayKeepAStream) {
  const grpc::CallbackServerContext context;
  const auto rights = CheckStream(nullptr, context);
  ASSERT_TRUE(rights.ok()) << rights.status();
  EXPECT_FALSE(rights->allowed && !rights->allowed().ok());
}

TEST(CallTest, AStreamsRightsEndWhenTokensAreAskedFor) {
  security::Gate gate({});
  const grpc::CallbackServerContext context;
  const auto rights = CheckStream(&gate, context);
  ASSERT_TRUE(rights.ok()) << rights.status();
  ASSERT_TRUE(rights->allowed);
  EXPECT_TRUE(rights->allowed().ok());
  gate.Use(SomeTokens());
  EXPECT_TRUE(absl::IsUnauthenticated(rights->allowed()));
  EXPECT_TRUE(absl::IsUnauthenticated(CheckStream(&gate, context).status()));
}

}  // namespace
}  // namespace sfmamba::rpc
