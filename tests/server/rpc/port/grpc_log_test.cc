#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"
#include "server/rpc/port/grpc_port.h"

namespace sfmamba::rpc {
namespace {

class GrpcLogTest : public testing::Test {
 protected:
  // Sets the level that a process has after gRPC was started. This test does
  // not start gRPC.
  GrpcLogTest() { gpr_set_log_verbosity(GPR_LOG_SEVERITY_INFO); }

  GrpcLog::Options Options() {
    GrpcLog::Options options;
    options.error = [this](absl::string_view text) {
      errors_.emplace_back(text);
    };
    options.handshake_failed = [this](absl::string_view text) {
      handshakes_.emplace_back(text);
    };
    return options;
  }

  std::vector<std::string> errors_, handshakes_;
};

TEST_F(GrpcLogTest, ErrorsAndHandshakesAreTold) {
  const GrpcLog log(Options());
  gpr_log(GPR_ERROR, "something is wrong: %d", 7);
  gpr_log(GPR_ERROR, "Handshake failed with fatal error SSL_ERROR_SSL: x.");
  gpr_log(GPR_INFO, "something is well");
  EXPECT_EQ(errors_, std::vector<std::string>{"something is wrong: 7"});
  ASSERT_EQ(handshakes_.size(), 1u);
}

TEST_F(GrpcLogTest, NothingIsToldAfterItsEnd) {
  { const GrpcLog log(Options()); }
  gpr_log(GPR_ERROR, "something is wrong");
  EXPECT_TRUE(errors_.empty());
}

}  // namespace
}  // namespace sfmamba::rpc
