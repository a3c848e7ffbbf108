// Tests that compressing and decompressing leak no memory.

#include <string>

#include "gtest/gtest.h"
#include "server/http/gzip.h"
#include "server/http/room.h"
#include "tests/testing/allocations.h"

namespace sfmamba::http {
namespace {

// Expects that calling `fn` twenty times takes hardly more memory than calling
// it once.
template <typename Fn>
void ExpectNoneIsLeft(const Fn& fn) {
  // The first call allocates memory that is never freed.
  fn();
  const int64_t once = PeakOfHeap(fn);
  const int64_t often = PeakOfHeap([&fn] {
    for (int i = 0; i < 20; ++i) fn();
  });
  EXPECT_LT(often, 2 * once);
}

TEST(GzipMemoryTest, PackingLeavesNone) {
  ExpectNoneIsLeft([] { Gzip("text"); });
}

TEST(GzipMemoryTest, UnpackingLeavesNone) {
  for (const std::string& packed : {Gzip("text"), std::string("no gzip")}) {
    ExpectNoneIsLeft([&packed] {
      Room room(1 << 20, 1);
      Room::Hold hold = room.MakeHold("ipv4:10.0.0.7");
      std::string body = packed;
      Unpack(1 << 20, &hold, &body);
    });
  }
}

}  // namespace
}  // namespace sfmamba::http
