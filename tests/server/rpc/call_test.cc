#include "server/rpc/call.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/security/token_texts.h"

namespace sfmamba::rpc {
namespace {

security::Tokens SomeTokens() {
  auto tokens = security::Tokens::Parse(
      security::ClientText("camera", "one", "INFER"), {});
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  return *std::move(tokens);
}

TEST(CallTest, ARequestWithoutPicturesIsReadUpToItsLimit) {
  constexpr size_t kMost = 256 << 10;
  const auto check = [](size_t bytes) {
    const grpc::Slice slice(std::string(bytes, 'x'));
    return CheckPlainRequest(grpc::ByteBuffer(&slice, 1));
  };
  EXPECT_TRUE(check(kMost).ok());
  const absl::Status more = check(kMost + 1);
  EXPECT_EQ(server::GetErrorDetail(more).reason, "MALFORMED_MESSAGE");
  EXPECT_EQ(more.message(),
            "got a message of 262145 bytes, expected at most 262144");
}

TEST(CallTest, WithoutAGateEverybodyMayKeepAStream) {
  const grpc::CallbackServerContext context;
  const auto rights = CheckStream(nullptr, context, security::Scope::kInfer);
  ASSERT_TRUE(rights.ok()) << rights.status();
  EXPECT_FALSE(rights->allowed && !rights->allowed().ok());
}

TEST(CallTest, AStreamsRightsEndWhenTokensAreAskedFor) {
  security::Gate gate({});
  const grpc::CallbackServerContext context;
  const auto rights = CheckStream(&gate, context, security::Scope::kInfer);
  ASSERT_TRUE(rights.ok()) << rights.status();
  ASSERT_TRUE(rights->allowed);
  EXPECT_TRUE(rights->allowed().ok());
  gate.Use(SomeTokens());
  EXPECT_TRUE(absl::IsUnauthenticated(rights->allowed()));
  EXPECT_TRUE(absl::IsUnauthenticated(
      CheckStream(&gate, context, security::Scope::kInfer).status()));
}

}  // namespace
}  // namespace sfmamba::rpc
