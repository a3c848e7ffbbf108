#include "server/host/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

TEST(FillStandardDescriptorsTest, NothingElseGetsTheNumberOfAClosedOne) {
  const int kept = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  FillStandardDescriptors();
  const int next = open("/dev/null", O_RDONLY);
  EXPECT_GT(next, STDERR_FILENO);
  char byte;
  EXPECT_EQ(read(STDIN_FILENO, &byte, 1), 0) << "it is empty";
  close(next);
  dup2(kept, STDIN_FILENO);
  close(kept);
}

TEST(FillStandardDescriptorsTest, OpenOnesAreLeft) {
  const int before = open("/dev/null", O_RDONLY);
  close(before);
  FillStandardDescriptors();
  const int after = open("/dev/null", O_RDONLY);
  EXPECT_EQ(after, before) << "none is lost";
  close(after);
}

}  // namespace
}  // namespace sfmamba::server
