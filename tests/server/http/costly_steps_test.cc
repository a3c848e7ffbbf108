#include <chrono>
#include <string>

#include "boost/asio/io_context.hpp"
#include "boost/asio/post.hpp"
#include "gtest/gtest.h"
#include "server/http/connection.h"

namespace sfmamba::http {
namespace {

TEST(CostlyStepsTest, OthersRunBetweenTwoSteps) {
  boost::asio::io_context loop;
  CostlySteps steps(loop, std::chrono::seconds(0));
  std::string order;
  for (int i = 0; i < 3; ++i) {
    CostlySteps::Executor{&steps}.execute([&order] { order += 's'; });
  }
  boost::asio::post(loop, [&] {
    order += 'o';
    boost::asio::post(loop, [&order] { order += 'o'; });
  });
  loop.run();
  EXPECT_EQ(order, "sosos");
}

}  // namespace
}  // namespace sfmamba::http
