// That packing and unpacking leave no memory behind.

#include <string>

#include "gtest/gtest.h"
#include "server/http/gzip.h"
#include "server/http/room.h"
#include "tests/testing/allocations.h"

namespace sfmamba::http {
namespace {

// Expects that `fn` needs as much memory as once when it is called often.
template <typename Fn>
void ExpectNoneIsLeft(const Fn& fn) {
  fn();  // What is made at a first use stays.
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
