#include "client/rpc/reach.h"

#include <stdlib.h>

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReachTest, ErrorsOfCallsThroughAProxyNameIt) {
  setenv("http_proxy", "http://user:password@proxy:1", 1);
  for (const absl::Status& error :
       {absl::UnavailableError("Connection refused"),
        absl::DeadlineExceededError("Deadline Exceeded")}) {
    const auto explained = [&](const std::string& server) {
      return std::string(Explain({server}, error).message());
    };
    EXPECT_THAT(explained("vision.example.org:1"),
                HasSubstr("through the HTTP proxy proxy:1"));
    EXPECT_THAT(explained("127.0.0.1:1"), Not(HasSubstr("proxy")));
  }
}

}  // namespace
}  // namespace sfmamba::client
